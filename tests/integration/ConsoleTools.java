import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.utils.Exit;
import org.apache.kafka.tools.ConsoleProducer;
import org.apache.kafka.tools.consumer.ConsoleConsumer;

/**
 * Runs Kafka's console producer or consumer for each file of arguments, in one JVM.
 *
 * The first line of a file is the producer's input, or empty for the consumer; each other line is an argument. A line
 * "== FILE" precedes the output of each run.
 */
public class ConsoleTools {
    public static void main(String[] files) throws Exception {
        for (String file : files) {
            System.out.println("== " + file);
            List<String> lines = Files.readAllLines(Path.of(file));
            String[] arguments = lines.subList(1, lines.size()).toArray(new String[0]);
            if (lines.get(0).isEmpty()) {
                ConsoleConsumer.main(arguments);
            } else {
                produce(lines.get(0), arguments);
            }
            System.out.flush();
        }
    }

    private static void produce(String input, String[] arguments) {
        System.setIn(new ByteArrayInputStream((input + "\n").getBytes()));
        Exit.setExitProcedure((status, message) -> {
            throw new Ended(status);
        });
        try {
            ConsoleProducer.main(arguments);
        } catch (Ended end) {
            if (end.status != 0) {
                Exit.resetExitProcedure();
                Exit.exit(end.status);
            }
        } finally {
            Exit.resetExitProcedure();
        }
    }

    private static class Ended extends Error {
        final int status;

        Ended(int status) {
            this.status = status;
        }
    }
}
