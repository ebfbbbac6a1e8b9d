"""Security of the embedded broker: TLS with certificates of its own, and the server side of SASL.

    protection          what a listener demands, and the users that it knows
    certificates        a CA, broker and client certificates
    given_certificates  certificates of the user's
    distinguished_name  the name of a certificate's subject
    principal_mapping   users by names of subjects
    sasl_session        SASL on one connection
    mechanisms          server side of PLAIN, SCRAM and OAUTHBEARER
    tokens              checks of OAUTHBEARER tokens

None of the client's code is used, so that one fault cannot hide on both sides.
"""
