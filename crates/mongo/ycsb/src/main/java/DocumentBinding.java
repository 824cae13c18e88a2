import com.mongodb.client.MongoClient;
import com.mongodb.client.MongoClients;
import com.mongodb.client.MongoCollection;
import com.mongodb.client.model.Filters;
import com.mongodb.client.model.InsertManyOptions;
import com.mongodb.client.model.Projections;
import com.mongodb.client.model.Sorts;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import org.bson.Document;
import org.bson.conversions.Bson;
import org.bson.types.Binary;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * YCSB's operations by MongoDB's driver, as YCSB's own binding does them: a record is a document under its key, a field is binary. One
 * client is shared by all threads. Properties: mongodb.url, batchsize (records of one insertMany, 1 by default).
 */
public class DocumentBinding extends DB {
  private static MongoClient client;
  private static int users;

  private MongoCollection<Document> collection;
  private int batchSize;
  private final List<Document> batch = new ArrayList<>();

  @Override
  public void init() {
    var url = getProperties().getProperty("mongodb.url");
    batchSize = Integer.parseInt(getProperties().getProperty("batchsize", "1"));
    synchronized (DocumentBinding.class) {
      if (users == 0) {
        client = MongoClients.create(url);
      }
      users += 1;
      collection = client.getDatabase("ycsb").getCollection("usertable");
    }
  }

  @Override
  public void cleanup() throws DBException {
    if (!flush().isOk()) {
      throw new DBException("the last batch was not written");
    }
    synchronized (DocumentBinding.class) {
      users -= 1;
      if (users == 0) {
        client.close();
      }
    }
  }

  private Status flush() {
    try {
      if (!batch.isEmpty()) {
        collection.insertMany(batch, new InsertManyOptions().ordered(false));
        batch.clear();
      }
      return Status.OK;
    } catch (RuntimeException error) {
      return failed(error);
    }
  }

  private static Status failed(RuntimeException error) {
    System.err.println(error);
    return Status.ERROR;
  }

  private static Bson projection(Set<String> fields) {
    return fields == null ? null : Projections.fields(Projections.include(new ArrayList<>(fields)), Projections.excludeId());
  }

  private static void fill(Map<String, ByteIterator> result, Document found) {
    for (var field : found.entrySet()) {
      if (field.getValue() instanceof Binary bytes) {
        result.put(field.getKey(), new ByteArrayByteIterator(bytes.getData()));
      }
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      var found = collection.find(Filters.eq("_id", key)).projection(projection(fields)).first();
      if (found == null) {
        return Status.NOT_FOUND;
      }
      fill(result, found);
      return Status.OK;
    } catch (RuntimeException error) {
      return failed(error);
    }
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    try {
      var found = collection.find(Filters.gte("_id", start)).sort(Sorts.ascending("_id")).limit(count).projection(projection(fields));
      for (var each : found) {
        var row = new HashMap<String, ByteIterator>();
        fill(row, each);
        result.add(row);
      }
      return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
    } catch (RuntimeException error) {
      return failed(error);
    }
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    try {
      var fields = new Document();
      values.forEach((name, value) -> fields.put(name, value.toArray()));
      var done = collection.updateOne(Filters.eq("_id", key), new Document("$set", fields));
      return done.getMatchedCount() == 1 ? Status.OK : Status.NOT_FOUND;
    } catch (RuntimeException error) {
      return failed(error);
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    try {
      var document = new Document("_id", key);
      values.forEach((name, value) -> document.put(name, value.toArray()));
      if (batchSize == 1) {
        collection.insertOne(document);
        return Status.OK;
      }
      batch.add(document);
      return batch.size() < batchSize ? Status.BATCHED_OK : flush();
    } catch (RuntimeException error) {
      return failed(error);
    }
  }

  @Override
  public Status delete(String table, String key) {
    try {
      return collection.deleteOne(Filters.eq("_id", key)).getDeletedCount() == 1 ? Status.OK : Status.NOT_FOUND;
    } catch (RuntimeException error) {
      return failed(error);
    }
  }
}
