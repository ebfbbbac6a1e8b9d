"""The embedded broker: a real Kafka server over TCP, in pure Python, with its logs in memory.

    server       EmbeddedCluster: what tests and the console tool start; Broker: one listener
    listener     sockets, under asyncio and trio
    session      one client's connection: requests in order, answers in order
    dispatch     from a frame to the handler of its API, and back
    handlers/    one file per API
    personality  which release is played: versions, formats, manners
    state        topics, partitions, leaders
    configs      values of configs and their sources; tables: topic_configs, broker_configs, group_configs
    log          one partition's batches
    append       what is checked and changed before a batch enters a log
    groups       the coordinator of consumer groups
    faults       scripted faults, and the log of requests
    zookeeper/   a ZooKeeper server; zookeeper_mode/: brokers that live with it
    timers       the clock and what is to happen later

It shares the message and record layers with the client and nothing above them, so that one bug cannot hide on both
sides.
"""
