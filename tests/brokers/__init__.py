"""Real Apache Kafka clusters on 127.0.0.1, from the published jars: no Docker, standard library only.

| module       | what lives there                                                              |
|--------------|-------------------------------------------------------------------------------|
| releases     | which releases there are, their short names, what to ask Maven for             |
| jars         | the cache of jars, the class a tool goes by in a release, the java command     |
| model        | what is recorded about a running cluster (`cluster.json`), and its lock        |
| processes    | starting and ending processes by their recorded pid, never by name            |
| properties   | the brokers' configuration files                                              |
| credentials  | certificates, SASL users, the Java tools' client configurations                |
| probe        | as much of Kafka's protocol as it takes to see that a broker is ready          |
| readiness    | waiting for ZooKeeper, controllers, brokers and topics; ports                  |
| topics       | creating topics                                                               |
| start        | bringing a cluster up                                                         |
| control      | ending it, and what may be done to one process                                |
| tools        | running a release's own command line tools                                    |
| cli, survey  | the commands beside this file                                                 |

This package shares no code with `pykafka08`, so that one bug cannot hide on both sides of a test.
"""
