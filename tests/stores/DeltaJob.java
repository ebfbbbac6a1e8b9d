import org.apache.spark.sql.Dataset;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.streaming.Trigger;

/**
 * Reads Delta tables with Delta Lake's connector, and writes their rows as Parquet files.
 *
 * <p>Arguments: the folder for the files, then {@code conf=KEY=VALUE}, {@code read=NAME=TABLE} and {@code
 * stream=NAME=TABLE}.
 */
public class DeltaJob {
    public static void main(String[] arguments) throws Exception {
        SparkSession.Builder builder = SparkSession.builder()
                .master("local[2]")
                .config("spark.ui.enabled", "false")
                .config("spark.log.level", "ERROR")
                .config("spark.sql.adaptive.enabled", "false")
                .config("spark.sql.session.timeZone", "UTC")
                .config("spark.sql.shuffle.partitions", "1")
                .config("spark.databricks.delta.snapshotPartitions", "1")
                .config("spark.sql.codegen.wholeStage", "false")
                .config("spark.sql.codegen.factoryMode", "NO_CODEGEN")
                .config("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
                .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
                .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog");
        for (String argument : arguments) {
            if (argument.startsWith("conf=")) {
                String[] words = argument.split("=", 3);
                builder.config(words[1], words[2]);
            }
        }
        SparkSession spark = builder.getOrCreate();
        for (int i = 1; i < arguments.length; i++) {
            String[] words = arguments[i].split("=", 3);
            String folder = arguments[0] + "/" + words[1];
            if (words[0].equals("read")) {
                Dataset<Row> rows = spark.read().format("delta").load(words[2]);
                rows.coalesce(1).write().parquet(folder);
            } else if (words[0].equals("stream")) {
                Dataset<Row> rows = spark.readStream().format("delta").load(words[2]);
                rows.coalesce(1)
                        .writeStream()
                        .format("parquet")
                        .option("checkpointLocation", folder + ".checkpoint")
                        .trigger(Trigger.AvailableNow())
                        .start(folder)
                        .awaitTermination();
            }
        }
        spark.stop();
    }
}
