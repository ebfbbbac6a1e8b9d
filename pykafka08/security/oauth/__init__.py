"""OAuth 2 access tokens for OAUTHBEARER, and the places where they come from.

token            one access token: its format, its claims, its expiry
provider         the application's token provider
shared_token     one token for all connections of a client, replaced before it expires
token_endpoint   tokens of an OAuth token endpoint: client credentials and JWT bearer (KIP-768, KIP-1139)
assertion        signed JWTs that such an endpoint takes in place of a client secret
token_file       a token in a file that another program replaces
unsecured        unsigned tokens, for development
sources          the source that the settings name
"""
