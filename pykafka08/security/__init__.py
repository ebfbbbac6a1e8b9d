"""Security of the clients: settings, TLS, SASL mechanisms, and the secrets that they use.

    secret       text that prints as ``***``
    settings     every security setting, with its default and its checks
    tls          TLS contexts, which follow certificates that change on disk
    tls_errors   errors of handshakes, with the setting to change (peer_names: host names of a refused certificate)
    keystores    JKS (jks), PKCS #12 and PEM; client_key loads the private key, cipher_suites names suites
    sasl         one module a mechanism: PLAIN, SCRAM, OAUTHBEARER, GSSAPI, AWS_MSK_IAM

Connections use this package; it does not know them.  The embedded broker has its own server side.
"""
