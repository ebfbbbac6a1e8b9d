"""Security of the clients: settings, TLS, SASL mechanisms, and the secrets that they use.

    secret       text that prints as ``***``
    settings     every security setting, with its default and its checks
    sasl         one module a mechanism: PLAIN, SCRAM, OAUTHBEARER, GSSAPI, AWS_MSK_IAM

Connections use this package; it does not know them.  The embedded broker has its own server side.
"""
