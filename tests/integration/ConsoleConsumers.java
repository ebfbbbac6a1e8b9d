import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.kafka.tools.consumer.ConsoleConsumer;

/**
 * Kafka's console consumer once for each file of arguments, one argument a line, in one JVM.
 *
 * A line that begins with "== " and has the file's name stands before the output of each.
 */
public class ConsoleConsumers {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            System.out.println("== " + file);
            ConsoleConsumer.main(Files.readAllLines(Path.of(file)).toArray(new String[0]));
            System.out.flush();
        }
    }
}
