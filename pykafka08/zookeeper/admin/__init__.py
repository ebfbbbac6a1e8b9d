"""Administration through ZooKeeper: ``admin`` has the public class, the other modules its parts."""
