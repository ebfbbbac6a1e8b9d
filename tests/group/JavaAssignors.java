// Kafka's own assignors, asked from standard input: a line a case, a line of answer each.
//   assign NAME topic=count,... member|instance or -|subscription in hex ...   -> member=assignment in hex ...
//   userdata NAME generation topic-partition,...                               -> user data in hex
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.*;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.*;

public class JavaAssignors {
    static ConsumerPartitionAssignor named(String name) {
        for (ConsumerPartitionAssignor each : List.of(new RangeAssignor(), new RoundRobinAssignor(),
                new StickyAssignor(), new CooperativeStickyAssignor()))
            if (each.name().equals(name)) return each;
        throw new IllegalArgumentException(name);
    }

    static String hex(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return HexFormat.of().formatHex(bytes);
    }

    static String assign(String[] words) {
        Node node = new Node(0, "localhost", 9092);
        List<PartitionInfo> partitions = new ArrayList<>();
        for (String topic : words[2].split(",")) {
            String[] pair = topic.split("=");
            for (int number = 0; number < Integer.parseInt(pair[1]); number++)
                partitions.add(new PartitionInfo(pair[0], number, node, new Node[] {node}, new Node[] {node}));
        }
        Map<String, Subscription> group = new HashMap<>();
        for (String word : Arrays.copyOfRange(words, 3, words.length)) {
            String[] member = word.split("\\|");
            ByteBuffer told = ByteBuffer.wrap(HexFormat.of().parseHex(member[2]));
            Subscription subscription = ConsumerProtocol.deserializeSubscription(told);
            if (!member[1].equals("-")) subscription.setGroupInstanceId(Optional.of(member[1]));
            group.put(member[0], subscription);
        }
        Cluster cluster = new Cluster("c", List.of(node), partitions, Set.of(), Set.of());
        StringJoiner line = new StringJoiner(" ");
        named(words[1]).assign(cluster, new GroupSubscription(group)).groupAssignment().forEach(
            (member, mine) -> line.add(member + "=" + hex(ConsumerProtocol.serializeAssignment(mine))));
        return line.toString();
    }

    static String userData(String[] words) {
        List<TopicPartition> partitions = new ArrayList<>();
        for (String word : words[3].split(",")) {
            int dash = word.lastIndexOf('-');
            partitions.add(new TopicPartition(word.substring(0, dash), Integer.parseInt(word.substring(dash + 1))));
        }
        ConsumerPartitionAssignor assignor = named(words[1]);
        ConsumerGroupMetadata group =
            new ConsumerGroupMetadata("g", Integer.parseInt(words[2]), "m", Optional.empty());
        assignor.onAssignment(new Assignment(partitions), group);
        return hex(assignor.subscriptionUserData(Set.of("t")));
    }

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null;) {
            String[] words = line.split(" ");
            System.out.println(words[0].equals("assign") ? assign(words) : userData(words));
        }
    }
}
