import io.lettuce.core.Range;
import io.lettuce.core.RedisClient;
import io.lettuce.core.RedisFuture;
import io.lettuce.core.RedisURI;
import io.lettuce.core.ScanIterator;
import io.lettuce.core.TrackingArgs;
import io.lettuce.core.support.caching.CacheAccessor;
import io.lettuce.core.support.caching.ClientSideCaching;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.DefaultJedisClientConfig;
import redis.clients.jedis.HostAndPort;
import redis.clients.jedis.Jedis;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPooled;
import redis.clients.jedis.JedisPubSub;
import redis.clients.jedis.RedisProtocol;
import redis.clients.jedis.Response;
import redis.clients.jedis.StreamEntryID;
import redis.clients.jedis.exceptions.JedisConnectionException;
import redis.clients.jedis.exceptions.JedisNoScriptException;
import redis.clients.jedis.params.ScanParams;
import redis.clients.jedis.params.SetParams;
import redis.clients.jedis.params.XReadGroupParams;

/** Jedis and Lettuce as applications use them. */
public class Check {
  static final int PORT = Integer.parseInt(System.getenv("REDIS_PORT"));

  interface Body {
    void run() throws Exception;
  }

  static int passed;
  static int failed;

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

  static void restart() throws Exception {
    same(new ProcessBuilder(System.getenv("RESTART_SERVER")).start().waitFor(), 0);
  }

  static void jedis(JedisPool pool, RedisProtocol protocol) {
    String in = " in " + protocol;
    check("values" + in, () -> {
      try (Jedis r = pool.getResource()) {
        r.flushAll();
        same(r.set("k", "v", SetParams.setParams().nx().ex(100)), "OK");
        same(r.set("k", "w", SetParams.setParams().nx()), null);
        r.hset("h", Map.of("a", "1", "b", "two"));
        same(r.hgetAll("h"), Map.of("a", "1", "b", "two"));
        r.zadd("z", 1.5, "a");
        same(r.zscore("z", "a"), 1.5);
      }
    });
    check("a pool of threads" + in, () -> {
      List<Thread> threads = new ArrayList<>();
      for (int i = 0; i < 16; i++) {
        threads.add(new Thread(() -> {
          for (int n = 0; n < 100; n++) {
            try (Jedis r = pool.getResource()) {
              r.incr("hits");
            }
          }
        }));
      }
      threads.forEach(Thread::start);
      for (Thread thread : threads) {
        thread.join();
      }
      try (Jedis r = pool.getResource()) {
        same(r.get("hits"), "1600");
      }
    });
    check("pipelines" + in, () -> {
      try (Jedis r = pool.getResource(); var pipe = r.pipelined()) {
        List<Response<String>> got = new ArrayList<>();
        for (int i = 0; i < 10000; i++) {
          pipe.set("p" + i, "" + i);
        }
        for (int i = 0; i < 10000; i++) {
          got.add(pipe.get("p" + i));
        }
        pipe.sync();
        for (int i = 0; i < 10000; i++) {
          same(got.get(i).get(), "" + i);
        }
      }
    });
    check("transactions" + in, () -> {
      try (Jedis r = pool.getResource(); Jedis other = pool.getResource()) {
        r.set("stock", "5");
        r.watch("stock");
        var first = r.multi();
        first.decr("stock");
        same(first.exec(), List.of(4L));
        r.watch("stock");
        other.set("stock", "9");
        var second = r.multi();
        second.decr("stock");
        same(second.exec(), null);
      }
    });
    check("scripts" + in, () -> {
      try (Jedis r = pool.getResource()) {
        String hash = r.scriptLoad("return redis.call('INCRBY', KEYS[1], ARGV[1])");
        same(r.evalsha(hash, 1, "n", "3"), 3L);
        r.scriptFlush();
        try {
          r.evalsha(hash, 1, "n", "3");
          throw new AssertionError("no error");
        } catch (JedisNoScriptException expected) {
          same(r.eval("return {1, 'two', {3}}"), List.of(1L, "two", List.of(3L)));
        }
      }
    });
    check("channels" + in, () -> {
      BlockingQueue<String> seen = new LinkedBlockingQueue<>();
      JedisPubSub sub = new JedisPubSub() {
        @Override
        public void onSubscribe(String channel, int count) {
          seen.add("subscribed");
        }

        @Override
        public void onMessage(String channel, String message) {
          seen.add(message);
          unsubscribe();
        }
      };
      Thread thread = new Thread(() -> {
        try (Jedis r = pool.getResource()) {
          r.subscribe(sub, "news");
        }
      });
      thread.start();
      same(seen.poll(10, TimeUnit.SECONDS), "subscribed");
      try (Jedis r = pool.getResource()) {
        same(r.publish("news", "hello"), 1L);
      }
      same(seen.poll(10, TimeUnit.SECONDS), "hello");
      thread.join();
    });
    check("blocking pops" + in, () -> {
      BlockingQueue<List<String>> got = new LinkedBlockingQueue<>();
      Thread thread = new Thread(() -> {
        try (Jedis r = pool.getResource()) {
          got.add(r.blpop(10, "q1", "q2"));
        }
      });
      thread.start();
      try (Jedis r = pool.getResource()) {
        while (!r.info("clients").contains("blocked_clients:1")) {
          Thread.sleep(5);
        }
        r.rpush("q2", "job");
      }
      same(got.poll(10, TimeUnit.SECONDS), List.of("q2", "job"));
      thread.join();
    });
    check("scans" + in, () -> {
      try (Jedis r = pool.getResource()) {
        HashSet<String> keys = new HashSet<>();
        String cursor = ScanParams.SCAN_POINTER_START;
        do {
          var part = r.scan(cursor, new ScanParams().match("p*").count(500));
          keys.addAll(part.getResult());
          cursor = part.getCursor();
        } while (!cursor.equals(ScanParams.SCAN_POINTER_START));
        same(keys.size(), 10000);
      }
    });
    check("streams" + in, () -> {
      try (Jedis r = pool.getResource()) {
        for (int i = 0; i < 100; i++) {
          r.xadd("s", StreamEntryID.NEW_ENTRY, Map.of("n", "" + i));
        }
        r.xgroupCreate("s", "g", new StreamEntryID(), false);
        long done = 0;
        while (true) {
          var got = r.xreadGroup("g", "c", new XReadGroupParams().count(9),
              Map.of("s", StreamEntryID.XREADGROUP_UNDELIVERED_ENTRY));
          if (got == null || got.isEmpty()) {
            break;
          }
          for (var entry : got.get(0).getValue()) {
            done += r.xack("s", "g", entry.getID());
          }
        }
        same(done, 100L);
        same(r.xpending("s", "g").getTotal(), 0L);
      }
    });
    check("a kill" + in, () -> {
      try (Jedis r = pool.getResource()) {
        r.set("before", "kill");
      }
      restart();
      String got = null;
      // Connections of the pool are of the server before: each fails once.
      for (int i = 0; i < 100 && got == null; i++) {
        try (Jedis r = pool.getResource()) {
          got = r.get("before");
        } catch (JedisConnectionException expected) {
          Thread.sleep(10);
        }
      }
      same(got, "kill");
    });
  }

  static void lettuce() {
    RedisClient client = RedisClient.create(RedisURI.create("127.0.0.1", PORT));
    var connection = client.connect();
    var sync = connection.sync();
    check("Lettuce: pipelines", () -> {
      sync.flushall();
      List<RedisFuture<String>> futures = new ArrayList<>();
      for (int i = 0; i < 10000; i++) {
        futures.add(connection.async().set("p" + i, "" + i));
      }
      for (var future : futures) {
        same(future.get(30, TimeUnit.SECONDS), "OK");
      }
      HashSet<String> keys = new HashSet<>();
      ScanIterator.scan(sync).forEachRemaining(keys::add);
      same(keys.size(), 10000);
    });
    check("Lettuce: transactions and streams", () -> {
      sync.multi();
      sync.incr("counter");
      sync.get("counter");
      var all = sync.exec();
      same(all.get(0), 1L);
      same(all.get(1), "1");
      sync.xadd("stream", Map.of("f", "v"));
      same(sync.xrange("stream", Range.unbounded()).get(0).getBody(), Map.of("f", "v"));
    });
    check("Lettuce: a cache that the server keeps right", () -> {
      Map<String, String> map = new ConcurrentHashMap<>();
      try (var own = client.connect()) {
        var cache = ClientSideCaching.enable(CacheAccessor.forMap(map), own, TrackingArgs.Builder.enabled());
        sync.set("cached", "1");
        same(cache.get("cached"), "1");
        same(map.get("cached"), "1");
        sync.set("cached", "2");
        for (int i = 0; i < 500 && map.containsKey("cached"); i++) {
          Thread.sleep(10);
        }
        same(cache.get("cached"), "2");
      }
    });
    check("Lettuce: a kill", () -> {
      sync.set("before", "kill");
      restart();
      same(sync.get("before"), "kill");
    });
    connection.close();
    client.shutdown(Duration.ZERO, Duration.ofSeconds(2));
  }

  public static void main(String[] arguments) {
    for (RedisProtocol protocol : List.of(RedisProtocol.RESP2, RedisProtocol.RESP3)) {
      var config = DefaultJedisClientConfig.builder().protocol(protocol).build();
      var pooled = new org.apache.commons.pool2.impl.GenericObjectPoolConfig<Jedis>();
      pooled.setMaxTotal(20);
      try (JedisPool pool = new JedisPool(pooled, new HostAndPort("127.0.0.1", PORT), config)) {
        jedis(pool, protocol);
      }
    }
    check("Jedis: a pooled client", () -> {
      try (JedisPooled r = new JedisPooled("127.0.0.1", PORT)) {
        r.set("pooled", "1");
        same(r.incr("pooled"), 2L);
      }
    });
    lettuce();
    System.out.printf("%d passed, %d failed%n", passed, failed);
    System.exit(failed > 0 ? 1 : 0);
  }
}
