import static com.mongodb.client.model.Aggregates.group;
import static com.mongodb.client.model.Aggregates.match;
import static com.mongodb.client.model.Aggregates.sort;
import static com.mongodb.client.model.Filters.eq;
import static com.mongodb.client.model.Filters.gte;
import static com.mongodb.client.model.Filters.lt;
import static com.mongodb.client.model.Updates.combine;
import static com.mongodb.client.model.Updates.inc;
import static com.mongodb.client.model.Updates.push;
import static com.mongodb.client.model.Updates.set;

import com.mongodb.ExplainVerbosity;
import com.mongodb.MongoBulkWriteException;
import com.mongodb.MongoCommandException;
import com.mongodb.MongoException;
import com.mongodb.MongoWriteException;
import com.mongodb.WriteConcern;
import com.mongodb.client.ClientSession;
import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.MongoDatabase;
import com.mongodb.client.gridfs.GridFSBuckets;
import com.mongodb.client.model.Accumulators;
import com.mongodb.client.model.DeleteOneModel;
import com.mongodb.client.model.FindOneAndUpdateOptions;
import com.mongodb.client.model.IndexOptions;
import com.mongodb.client.model.Indexes;
import com.mongodb.client.model.InsertManyOptions;
import com.mongodb.client.model.InsertOneModel;
import com.mongodb.client.model.Projections;
import com.mongodb.client.model.ReplaceOneModel;
import com.mongodb.client.model.ReplaceOptions;
import com.mongodb.client.model.ReturnDocument;
import com.mongodb.client.model.Sorts;
import com.mongodb.client.model.UpdateManyModel;
import com.mongodb.client.model.UpdateOptions;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.regex.Pattern;
import org.bson.BsonRegularExpression;
import org.bson.BsonTimestamp;
import org.bson.Document;
import org.bson.types.Binary;
import org.bson.types.Decimal128;
import org.bson.types.MaxKey;
import org.bson.types.MinKey;
import org.bson.types.ObjectId;

/** MongoDB's synchronous driver for Java as applications use it. */
public class Check {
  interface Body {
    void run() throws Exception;
  }

  static int passed;
  static int failed;
  static MongoClient client = MongoClients.create(System.getenv("MONGO_URI"));
  static MongoDatabase db = client.getDatabase("java");

  static void check(String name, Body body) {
    try {
      body.run();
      passed += 1;
      System.out.println("ok " + name);
    } catch (Throwable error) {
      failed += 1;
      System.out.println("FAILED " + name + " " + error);
    }
  }

  static void same(Object got, Object wanted) {
    if (!Objects.equals(got, wanted)) {
      throw new AssertionError(got + ", not " + wanted);
    }
  }

  static MongoException refused(Body body) throws Exception {
    try {
      body.run();
    } catch (MongoException error) {
      return error;
    }
    throw new AssertionError("it was not refused");
  }

  static MongoCollection<Document> collection(String name) {
    return db.getCollection(name);
  }

  static void singleWrites() {
    var c = collection("single");
    var first = new Document("a", 1).append("b", new Document("c", List.of("x")));
    c.insertOne(first);
    same(c.find(eq("_id", first.getObjectId("_id"))).first(), first);
    var updated = c.updateOne(eq("a", 1), combine(inc("a", 1), push("b.c", "y")));
    same(List.of(updated.getMatchedCount(), updated.getModifiedCount()), List.of(1L, 1L));
    var upserted = c.updateOne(eq("_id", "new"), set("a", 5), new UpdateOptions().upsert(true));
    same(upserted.getUpsertedId().asString().getValue(), "new");
    same(c.replaceOne(eq("_id", "new"), new Document("z", 1)).getModifiedCount(), 1L);
    same(c.find(eq("b.c", "y")).projection(Projections.fields(Projections.excludeId(), Projections.include("a"))).first(),
        new Document("a", 2));
    same(c.deleteMany(new Document()).getDeletedCount(), 2L);
    same(c.countDocuments(), 0L);
  }

  static void cursors() {
    var c = collection("many");
    var all = new ArrayList<Document>();
    for (int n = 0; n < 10_000; n++) {
      all.add(new Document("_id", n).append("n", n).append("text", "x".repeat(n % 100)));
    }
    same(c.insertMany(all).getInsertedIds().size(), 10_000);
    long total = 0;
    try (var cursor = c.find(gte("n", 5000)).batchSize(333).iterator()) {
      while (cursor.hasNext()) {
        total += cursor.next().getInteger("n");
      }
    }
    same(total, (5000L + 9999) * 5000 / 2);
    var top = c.find().sort(Sorts.descending("n")).skip(10).limit(2).map(x -> x.getInteger("n")).into(new ArrayList<>());
    same(top, List.of(9989, 9988));
    try (var cursor = c.find().batchSize(2).iterator()) {
      cursor.next();
    }
    same(c.distinct("n", lt("n", 3), Integer.class).into(new HashSet<>()), Set.of(0, 1, 2));
    same(c.estimatedDocumentCount(), 10_000L);
  }

  static void bulks() {
    var done = collection("bulk").bulkWrite(List.of(
        new InsertOneModel<>(new Document("_id", 1)),
        new InsertOneModel<>(new Document("_id", 2)),
        new UpdateManyModel<>(new Document(), set("x", 1)),
        new ReplaceOneModel<>(eq("_id", 3), new Document("y", 1), new ReplaceOptions().upsert(true)),
        new DeleteOneModel<>(eq("_id", 1))));
    same(List.of(done.getInsertedCount(), done.getModifiedCount(), done.getUpserts().size(), done.getDeletedCount()),
        List.of(2, 2, 1, 1));
  }

  static void duplicates() throws Exception {
    var c = collection("dups");
    c.insertOne(new Document("_id", 1));
    var one = (MongoWriteException) refused(() -> c.insertOne(new Document("_id", 1)));
    same(one.getError().getCode(), 11000);
    var three = List.of(new Document("_id", 2), new Document("_id", 1), new Document("_id", 3));
    var many = (MongoBulkWriteException) refused(() -> c.insertMany(three, new InsertManyOptions().ordered(false)));
    same(many.getWriteErrors().get(0).getIndex(), 1);
    same(many.getWriteResult().getInsertedCount(), 2);
    same(c.countDocuments(), 3L);
  }

  static void indexes() throws Exception {
    var c = collection("indexed");
    var all = new ArrayList<Document>();
    for (int n = 0; n < 100; n++) {
      all.add(new Document("mail", "m" + n).append("a", n % 10).append("b", n));
    }
    c.insertMany(all);
    same(c.createIndex(Indexes.ascending("mail"), new IndexOptions().unique(true)), "mail_1");
    c.createIndex(Indexes.compoundIndex(Indexes.ascending("a"), Indexes.descending("b")));
    var names = c.listIndexes().map(x -> x.getString("name")).into(new HashSet<>());
    same(names, Set.of("_id_", "mail_1", "a_1_b_-1"));
    same(refused(() -> c.insertOne(new Document("mail", "m5"))).getCode(), 11000);
    var plan = c.find(eq("a", 3)).sort(Sorts.descending("b")).explain(ExplainVerbosity.EXECUTION_STATS);
    same(plan.getEmbedded(List.of("executionStats", "totalDocsExamined"), Number.class).intValue(), 10);
    same(c.find(eq("a", 3)).sort(Sorts.descending("b")).limit(2).map(x -> x.getInteger("b")).into(new ArrayList<>()),
        List.of(93, 83));
    c.dropIndex("mail_1");
    c.insertOne(new Document("mail", "m5"));
  }

  static void pipelines() {
    var c = collection("sales");
    for (var row : List.of(List.<Object>of("a", 1), List.<Object>of("b", 2), List.<Object>of("a", 3), List.<Object>of("c", 4))) {
      c.insertOne(new Document("k", row.get(0)).append("n", row.get(1)));
    }
    var groups = c.aggregate(List.of(match(lt("n", 4)), group("$k", Accumulators.sum("total", "$n"),
        Accumulators.push("all", "$n")),
        sort(Sorts.ascending("_id")))).into(new ArrayList<>());
    same(groups, List.of(
        new Document("_id", "a").append("total", 4).append("all", List.of(1, 3)),
        new Document("_id", "b").append("total", 2).append("all", List.of(2))));
  }

  static void findAndModify() {
    var c = collection("counters");
    var options = new FindOneAndUpdateOptions().upsert(true).returnDocument(ReturnDocument.AFTER);
    same(c.findOneAndUpdate(eq("_id", "seq"), inc("n", 1), options).getInteger("n"), 1);
    same(c.findOneAndUpdate(eq("_id", "seq"), inc("n", 1), options).getInteger("n"), 2);
    same(c.findOneAndDelete(eq("_id", "seq")).getInteger("n"), 2);
    same(c.findOneAndReplace(eq("_id", "none"), new Document("a", 1)), null);
  }

  static void types() {
    var c = collection("types");
    var all = new Document("_id", new ObjectId())
        .append("string", "häß\0lich").append("double", 1.5).append("int", 7).append("long", 9007199254740993L)
        .append("decimal", Decimal128.parse("1.2345678901234567890123456789"))
        .append("date", new Date(1700000000123L)).append("binary", new Binary((byte) 128, new byte[] {1, 2, 3}))
        .append("stamp", new BsonTimestamp(5, 6)).append("min", new MinKey()).append("max", new MaxKey())
        .append("none", null).append("yes", true)
        .append("deep", Arrays.asList(List.of(), new Document(), Arrays.asList(1, null)));
    c.insertOne(all);
    same(c.find(eq("_id", all.get("_id"))).first(), all);
    c.updateOne(eq("_id", all.get("_id")), set("regex", Pattern.compile("^a", Pattern.CASE_INSENSITIVE)));
    same(c.find().first().get("regex"), new BsonRegularExpression("^a", "i"));
    same(c.countDocuments(new Document("decimal", new Document("$type", "decimal"))), 1L);
  }

  static void workers() throws Exception {
    var c = collection("counter");
    c.insertOne(new Document("_id", 1).append("n", 0));
    var threads = new ArrayList<Thread>();
    for (int t = 0; t < 8; t++) {
      threads.add(new Thread(() -> {
        for (int n = 0; n < 200; n++) {
          c.updateOne(eq("_id", 1), inc("n", 1));
        }
      }));
    }
    threads.forEach(Thread::start);
    for (var thread : threads) {
      thread.join();
    }
    same(c.find().first().getInteger("n"), 1600);
  }

  static void compressed() {
    try (var other = MongoClients.create(System.getenv("MONGO_URI") + "?compressors=zlib")) {
      var c = other.getDatabase("java").getCollection("compressed");
      var all = new ArrayList<Document>();
      for (int n = 0; n < 1000; n++) {
        all.add(new Document("n", n).append("text", "again and again ".repeat(20)));
      }
      c.insertMany(all);
      same(c.find().into(new ArrayList<>()).size(), 1000);
    }
  }

  static void sessions() {
    var c = collection("sessions").withWriteConcern(WriteConcern.MAJORITY.withJournal(true));
    try (ClientSession session = client.startSession()) {
      c.insertOne(session, new Document("a", 1));
      same(c.countDocuments(session), 1L);
    }
  }

  static void gridfs() throws Exception {
    var bucket = GridFSBuckets.create(db);
    var data = "drumlin ".repeat(87_500).getBytes();
    var id = bucket.uploadFromStream("a.bin", new ByteArrayInputStream(data));
    var back = new ByteArrayOutputStream();
    bucket.downloadToStream(id, back);
    same(Arrays.equals(back.toByteArray(), data), true);
    same(bucket.find().first().getLength(), 700_000L);
    bucket.delete(id);
  }

  static void refusals() throws Exception {
    var c = collection("refused");
    c.insertOne(new Document("a", 1));
    same(refused(() -> c.find(new Document("$where", "this.a")).first()).getMessage().contains("$where"), true);
    same(refused(() -> c.aggregate(List.of(new Document("$geoNear", new Document()))).first()).getMessage()
        .contains("$geoNear"), true);
    same(refused(() -> c.watch().iterator().next()).getMessage().toLowerCase().contains("changestream"), true);
    try (ClientSession session = client.startSession()) {
      session.startTransaction();
      // The driver puts words of its own in the place of the server's code 20.
      same(refused(() -> c.insertOne(session, new Document("a", 2))).getMessage().contains("does not support"), true);
    }
    same(((MongoCommandException) refused(() -> db.runCommand(new Document("nonsense", 1)))).getErrorCode(), 59);
    same(c.countDocuments(), 1L);
  }

  static void catalog() {
    db.createCollection("made");
    same(db.listCollectionNames().into(new HashSet<>()).contains("made"), true);
    collection("made").drop();
    same(db.listCollectionNames().into(new HashSet<>()).contains("made"), false);
    same(client.listDatabaseNames().into(new HashSet<>()).contains("java"), true);
  }

  static void aKilledServer() throws Exception {
    var c = collection("killed");
    var acknowledged = new ArrayList<Integer>();
    var stop = new AtomicBoolean();
    var writer = new Thread(() -> {
      for (int n = 0; !stop.get(); n++) {
        try {
          c.insertOne(new Document("_id", n));
          acknowledged.add(n);
        } catch (MongoException error) {
          // The server is away: its answer did not come.
        }
      }
    });
    writer.start();
    Thread.sleep(300);
    same(new ProcessBuilder(System.getenv("RESTART_SERVER")).inheritIO().start().waitFor(), 0);
    Thread.sleep(300);
    stop.set(true);
    writer.join();
    var found = c.find().map(x -> x.getInteger("_id")).into(new HashSet<>());
    same(acknowledged.size() > 10, true);
    same(found.containsAll(acknowledged), true);
  }

  public static void main(String[] args) {
    check("single writes", Check::singleWrites);
    check("cursors", Check::cursors);
    check("bulks", Check::bulks);
    check("duplicates", Check::duplicates);
    check("indexes", Check::indexes);
    check("pipelines", Check::pipelines);
    check("find and modify", Check::findAndModify);
    check("types", Check::types);
    check("workers", Check::workers);
    check("compressed", Check::compressed);
    check("sessions", Check::sessions);
    check("gridfs", Check::gridfs);
    check("refusals", Check::refusals);
    check("catalog", Check::catalog);
    check("a killed server", Check::aKilledServer);
    client.close();
    System.out.println(passed + " passed, " + failed + " failed");
    System.exit(failed == 0 ? 0 : 1);
  }
}
