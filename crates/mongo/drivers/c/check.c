/* MongoDB's driver for C (libmongoc 1) as applications use it. */
#include <mongoc/mongoc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static mongoc_client_pool_t *pool;
static mongoc_client_t *client;
static const char *failure;
static char failure_text[640];

#define CHECK(condition)                                                                         \
  do {                                                                                           \
    if (!(condition) && !failure) {                                                              \
      snprintf(failure_text, sizeof failure_text, "line %d: %s", __LINE__, #condition);          \
      failure = failure_text;                                                                    \
    }                                                                                            \
  } while (0)
#define OK(call)                                                                                 \
  do {                                                                                           \
    if (!(call) && !failure) {                                                                   \
      snprintf(failure_text, sizeof failure_text, "line %d: %s", __LINE__, error.message);       \
      failure = failure_text;                                                                    \
    }                                                                                            \
  } while (0)

static mongoc_collection_t *collection(const char *name) {
  return mongoc_client_get_collection(client, "c", name);
}

static int64_t count(mongoc_collection_t *c) {
  bson_error_t error;
  bson_t filter = BSON_INITIALIZER;
  int64_t n = mongoc_collection_count_documents(c, &filter, NULL, NULL, NULL, &error);
  OK(n >= 0);
  return n;
}

static int64_t number(const bson_t *reply, const char *path) {
  bson_iter_t iter, found;
  if (!bson_iter_init(&iter, reply) || !bson_iter_find_descendant(&iter, path, &found)) return -1;
  return bson_iter_as_int64(&found);
}

static void single_writes(void) {
  mongoc_collection_t *c = collection("single");
  bson_error_t error;
  bson_t reply;
  bson_t *first = BCON_NEW("_id", BCON_INT32(1), "a", BCON_INT32(1), "b", "{", "c", "[", BCON_UTF8("x"), "]", "}");
  OK(mongoc_collection_insert_one(c, first, NULL, NULL, &error));
  bson_t *filter = BCON_NEW("a", BCON_INT32(1));
  const bson_t *found;
  mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c, filter, NULL, NULL);
  CHECK(mongoc_cursor_next(cursor, &found) && bson_equal(found, first));
  mongoc_cursor_destroy(cursor);
  bson_t *update = BCON_NEW("$inc", "{", "a", BCON_INT32(1), "}", "$push", "{", "b.c", BCON_UTF8("y"), "}");
  OK(mongoc_collection_update_one(c, filter, update, NULL, &reply, &error));
  CHECK(number(&reply, "matchedCount") == 1 && number(&reply, "modifiedCount") == 1);
  bson_destroy(&reply);
  bson_t *other = BCON_NEW("_id", BCON_UTF8("new"));
  bson_t *set = BCON_NEW("$set", "{", "a", BCON_INT32(5), "}");
  bson_t *upsert = BCON_NEW("upsert", BCON_BOOL(true));
  OK(mongoc_collection_update_one(c, other, set, upsert, &reply, &error));
  CHECK(number(&reply, "upsertedCount") == 1);
  bson_destroy(&reply);
  bson_t *z = BCON_NEW("z", BCON_INT32(1));
  OK(mongoc_collection_replace_one(c, other, z, NULL, &reply, &error));
  CHECK(number(&reply, "modifiedCount") == 1);
  bson_destroy(&reply);
  bson_t every = BSON_INITIALIZER;
  OK(mongoc_collection_delete_many(c, &every, NULL, &reply, &error));
  CHECK(number(&reply, "deletedCount") == 2);
  bson_destroy(&reply);
  CHECK(count(c) == 0);
  bson_destroy(first), bson_destroy(filter), bson_destroy(update), bson_destroy(other), bson_destroy(set);
  bson_destroy(upsert), bson_destroy(z);
  mongoc_collection_destroy(c);
}

static void cursors(void) {
  mongoc_collection_t *c = collection("many");
  bson_error_t error;
  const bson_t *found;
  bson_t **all = malloc(10000 * sizeof *all);
  for (int n = 0; n < 10000; n++) all[n] = BCON_NEW("_id", BCON_INT32(n), "n", BCON_INT32(n));
  OK(mongoc_collection_insert_many(c, (const bson_t **)all, 10000, NULL, NULL, &error));
  for (int n = 0; n < 10000; n++) bson_destroy(all[n]);
  free(all);
  bson_t *filter = BCON_NEW("n", "{", "$gte", BCON_INT32(5000), "}");
  bson_t *options = BCON_NEW("batchSize", BCON_INT32(333));
  mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c, filter, options, NULL);
  int64_t sum = 0;
  while (mongoc_cursor_next(cursor, &found)) sum += number(found, "n");
  CHECK(!mongoc_cursor_error(cursor, &error));
  CHECK(sum == (5000 + 9999) * 5000LL / 2);
  mongoc_cursor_destroy(cursor);
  bson_destroy(options);
  options = BCON_NEW("sort", "{", "n", BCON_INT32(-1), "}", "skip", BCON_INT64(10), "limit", BCON_INT64(1));
  cursor = mongoc_collection_find_with_opts(c, filter, options, NULL);
  CHECK(mongoc_cursor_next(cursor, &found) && number(found, "n") == 9989);
  mongoc_cursor_destroy(cursor);
  CHECK(mongoc_collection_estimated_document_count(c, NULL, NULL, NULL, &error) == 10000);
  bson_destroy(filter), bson_destroy(options);
  mongoc_collection_destroy(c);
}

static void bulks(void) {
  mongoc_collection_t *c = collection("bulk");
  bson_error_t error;
  bson_t reply, every = BSON_INITIALIZER;
  mongoc_bulk_operation_t *bulk = mongoc_collection_create_bulk_operation_with_opts(c, NULL);
  bson_t *one = BCON_NEW("_id", BCON_INT32(1)), *two = BCON_NEW("_id", BCON_INT32(2));
  bson_t *set = BCON_NEW("$set", "{", "x", BCON_INT32(1), "}");
  mongoc_bulk_operation_insert(bulk, one);
  mongoc_bulk_operation_insert(bulk, two);
  mongoc_bulk_operation_update_many_with_opts(bulk, &every, set, NULL, &error);
  mongoc_bulk_operation_remove_one(bulk, one);
  OK(mongoc_bulk_operation_execute(bulk, &reply, &error));
  CHECK(number(&reply, "nInserted") == 2 && number(&reply, "nModified") == 2 && number(&reply, "nRemoved") == 1);
  bson_destroy(&reply);
  mongoc_bulk_operation_destroy(bulk);
  bson_destroy(one), bson_destroy(two), bson_destroy(set);
  mongoc_collection_destroy(c);
}

static void duplicates(void) {
  mongoc_collection_t *c = collection("dups");
  bson_error_t error;
  bson_t *one = BCON_NEW("_id", BCON_INT32(1)), *two = BCON_NEW("_id", BCON_INT32(2));
  OK(mongoc_collection_insert_one(c, one, NULL, NULL, &error));
  CHECK(!mongoc_collection_insert_one(c, one, NULL, NULL, &error) && error.code == 11000);
  const bson_t *both[] = {one, two};
  bson_t *unordered = BCON_NEW("ordered", BCON_BOOL(false));
  CHECK(!mongoc_collection_insert_many(c, both, 2, unordered, NULL, &error) && error.code == 11000);
  CHECK(count(c) == 2);
  bson_destroy(one), bson_destroy(two), bson_destroy(unordered);
  mongoc_collection_destroy(c);
}

static void indexes_and_pipelines(void) {
  mongoc_collection_t *c = collection("indexed");
  mongoc_database_t *db = mongoc_client_get_database(client, "c");
  bson_error_t error;
  const bson_t *found;
  for (int n = 0; n < 100; n++) {
    bson_t *row = BCON_NEW("mail", BCON_INT32(n), "a", BCON_INT32(n % 10), "b", BCON_INT32(n));
    OK(mongoc_collection_insert_one(c, row, NULL, NULL, &error));
    bson_destroy(row);
  }
  bson_t *command = BCON_NEW("createIndexes", BCON_UTF8("indexed"), "indexes", "[", "{", "key", "{", "mail", BCON_INT32(1), "}", "name",
                             BCON_UTF8("mail_1"), "unique", BCON_BOOL(true), "}", "]");
  OK(mongoc_database_write_command_with_opts(db, command, NULL, NULL, &error));
  bson_destroy(command);
  mongoc_cursor_t *cursor = mongoc_collection_find_indexes_with_opts(c, NULL);
  int indexes = 0;
  while (mongoc_cursor_next(cursor, &found)) indexes++;
  CHECK(indexes == 2);
  mongoc_cursor_destroy(cursor);
  bson_t *again = BCON_NEW("mail", BCON_INT32(5));
  CHECK(!mongoc_collection_insert_one(c, again, NULL, NULL, &error) && error.code == 11000);
  OK(mongoc_collection_drop_index_with_opts(c, "mail_1", NULL, &error));
  OK(mongoc_collection_insert_one(c, again, NULL, NULL, &error));
  bson_destroy(again);
  bson_t *pipeline = BCON_NEW("pipeline", "[", "{", "$match", "{", "a", BCON_INT32(3), "}", "}", "{", "$group", "{", "_id",
                              BCON_UTF8("$a"), "total", "{", "$sum", BCON_UTF8("$b"), "}", "}", "}", "]");
  cursor = mongoc_collection_aggregate(c, MONGOC_QUERY_NONE, pipeline, NULL, NULL);
  CHECK(mongoc_cursor_next(cursor, &found) && number(found, "total") == 480);
  mongoc_cursor_destroy(cursor);
  bson_destroy(pipeline);
  mongoc_database_destroy(db);
  mongoc_collection_destroy(c);
}

static void find_and_modify(void) {
  mongoc_collection_t *c = collection("counters");
  bson_error_t error;
  bson_t reply;
  bson_t *seq = BCON_NEW("_id", BCON_UTF8("seq")), *inc = BCON_NEW("$inc", "{", "n", BCON_INT32(1), "}");
  for (int n = 1; n < 3; n++) {
    OK(mongoc_collection_find_and_modify(c, seq, NULL, inc, NULL, false, true, true, &reply, &error));
    CHECK(number(&reply, "value.n") == n);
    bson_destroy(&reply);
  }
  bson_destroy(seq), bson_destroy(inc);
  mongoc_collection_destroy(c);
}

static void types(void) {
  mongoc_collection_t *c = collection("types");
  bson_error_t error;
  const bson_t *found;
  bson_oid_t oid;
  bson_decimal128_t decimal;
  bson_t all = BSON_INITIALIZER, list = BSON_INITIALIZER;
  bson_oid_init(&oid, NULL);
  bson_decimal128_from_string("1.2345678901234567890123456789", &decimal);
  BSON_APPEND_OID(&all, "_id", &oid);
  bson_append_utf8(&all, "string", -1, "h\0lich", 6);
  BSON_APPEND_DOUBLE(&all, "double", 1.5);
  BSON_APPEND_INT64(&all, "long", 9007199254740993LL);
  BSON_APPEND_DECIMAL128(&all, "decimal", &decimal);
  BSON_APPEND_DATE_TIME(&all, "date", 1700000000123LL);
  BSON_APPEND_BINARY(&all, "binary", BSON_SUBTYPE_USER, (const uint8_t *)"\1\2\3", 3);
  BSON_APPEND_REGEX(&all, "regex", "^a", "i");
  BSON_APPEND_TIMESTAMP(&all, "stamp", 5, 6);
  BSON_APPEND_MINKEY(&all, "min");
  BSON_APPEND_MAXKEY(&all, "max");
  BSON_APPEND_NULL(&all, "none");
  BSON_APPEND_CODE(&all, "code", "f()");
  BSON_APPEND_SYMBOL(&all, "symbol", "s");
  BSON_APPEND_ARRAY(&all, "list", &list);
  OK(mongoc_collection_insert_one(c, &all, NULL, NULL, &error));
  bson_t every = BSON_INITIALIZER;
  mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c, &every, NULL, NULL);
  CHECK(mongoc_cursor_next(cursor, &found) && bson_equal(found, &all));
  mongoc_cursor_destroy(cursor);
  bson_destroy(&all);
  mongoc_collection_destroy(c);
}

static void *count_up(void *failed) {
  mongoc_client_t *own = mongoc_client_pool_pop(pool);
  mongoc_collection_t *c = mongoc_client_get_collection(own, "c", "counter");
  bson_error_t error;
  bson_t *one = BCON_NEW("_id", BCON_INT32(1)), *inc = BCON_NEW("$inc", "{", "n", BCON_INT32(1), "}");
  for (int n = 0; n < 200; n++) {
    if (!mongoc_collection_update_one(c, one, inc, NULL, NULL, &error)) *(bool *)failed = true;
  }
  bson_destroy(one), bson_destroy(inc);
  mongoc_collection_destroy(c);
  mongoc_client_pool_push(pool, own);
  return NULL;
}

static void workers(void) {
  mongoc_collection_t *c = collection("counter");
  bson_error_t error;
  const bson_t *found;
  bool failed[8] = {false};
  pthread_t threads[8];
  bson_t *zero = BCON_NEW("_id", BCON_INT32(1), "n", BCON_INT32(0));
  OK(mongoc_collection_insert_one(c, zero, NULL, NULL, &error));
  for (int n = 0; n < 8; n++) pthread_create(&threads[n], NULL, count_up, &failed[n]);
  for (int n = 0; n < 8; n++) {
    pthread_join(threads[n], NULL);
    CHECK(!failed[n]);
  }
  bson_t every = BSON_INITIALIZER;
  mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c, &every, NULL, NULL);
  CHECK(mongoc_cursor_next(cursor, &found) && number(found, "n") == 1600);
  mongoc_cursor_destroy(cursor);
  bson_destroy(zero);
  mongoc_collection_destroy(c);
}

static void compressed(void) {
  char text[256];
  snprintf(text, sizeof text, "%s?compressors=snappy,zlib", getenv("MONGO_URI"));
  mongoc_client_t *plain = client;
  client = mongoc_client_new(text);
  mongoc_collection_t *c = collection("compressed");
  bson_error_t error;
  char words[321] = "";
  for (int n = 0; n < 20; n++) strcat(words, "again and again ");
  for (int n = 0; n < 100; n++) {
    bson_t *row = BCON_NEW("n", BCON_INT32(n), "text", BCON_UTF8(words));
    OK(mongoc_collection_insert_one(c, row, NULL, NULL, &error));
    bson_destroy(row);
  }
  CHECK(count(c) == 100);
  mongoc_collection_destroy(c);
  mongoc_client_destroy(client);
  client = plain;
}

static void sessions_and_refusals(void) {
  mongoc_collection_t *c = collection("refused");
  mongoc_database_t *db = mongoc_client_get_database(client, "c");
  bson_error_t error;
  const bson_t *found;
  mongoc_client_session_t *session = mongoc_client_start_session(client, NULL, &error);
  OK(session);
  bson_t options = BSON_INITIALIZER;
  OK(mongoc_client_session_append(session, &options, &error));
  bson_t *row = BCON_NEW("a", BCON_INT32(1));
  OK(mongoc_collection_insert_one(c, row, &options, NULL, &error));
  mongoc_client_session_destroy(session);
  bson_destroy(&options);
  bson_t *where = BCON_NEW("$where", BCON_UTF8("this.a"));
  mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c, where, NULL, NULL);
  CHECK(!mongoc_cursor_next(cursor, &found) && mongoc_cursor_error(cursor, &error) && strstr(error.message, "$where"));
  mongoc_cursor_destroy(cursor);
  bson_t *nonsense = BCON_NEW("nonsense", BCON_INT32(1));
  CHECK(!mongoc_database_command_simple(db, nonsense, NULL, NULL, &error) && error.code == 59);
  CHECK(count(c) == 1);
  bson_destroy(row), bson_destroy(where), bson_destroy(nonsense);
  mongoc_database_destroy(db);
  mongoc_collection_destroy(c);
}

static void gridfs(void) {
  bson_error_t error;
  bson_value_t id;
  mongoc_database_t *db = mongoc_client_get_database(client, "c");
  mongoc_gridfs_bucket_t *bucket = mongoc_gridfs_bucket_new(db, NULL, NULL, &error);
  OK(bucket);
  enum { SIZE = 700000 };
  char *data = malloc(SIZE), *back = malloc(SIZE);
  for (int n = 0; n < SIZE; n++) data[n] = "drumlin "[n % 8];
  mongoc_stream_t *up = mongoc_gridfs_bucket_open_upload_stream(bucket, "a.bin", NULL, &id, &error);
  CHECK(mongoc_stream_write(up, data, SIZE, 0) == SIZE);
  mongoc_stream_close(up), mongoc_stream_destroy(up);
  mongoc_stream_t *down = mongoc_gridfs_bucket_open_download_stream(bucket, &id, &error);
  OK(down);
  CHECK(mongoc_stream_read(down, back, SIZE, SIZE, 0) == SIZE && !memcmp(data, back, SIZE));
  mongoc_stream_destroy(down);
  OK(mongoc_gridfs_bucket_delete_by_id(bucket, &id, &error));
  bson_value_destroy(&id);
  free(data), free(back);
  mongoc_gridfs_bucket_destroy(bucket);
  mongoc_database_destroy(db);
}

static volatile bool stop;
static bool acknowledged[1 << 20];

static void *write_on(void *unused) {
  mongoc_client_t *own = mongoc_client_pool_pop(pool);
  mongoc_collection_t *c = mongoc_client_get_collection(own, "c", "killed");
  bson_error_t error;
  for (int n = 0; !stop && n < 1 << 20; n++) {
    bson_t *row = BCON_NEW("_id", BCON_INT32(n));
    acknowledged[n] = mongoc_collection_insert_one(c, row, NULL, NULL, &error);
    bson_destroy(row);
  }
  mongoc_collection_destroy(c);
  mongoc_client_pool_push(pool, own);
  return unused;
}

static void a_killed_server(void) {
  pthread_t writer;
  const bson_t *found;
  bson_error_t error;
  pthread_create(&writer, NULL, write_on, NULL);
  usleep(300000);
  CHECK(system(getenv("RESTART_SERVER")) == 0);
  usleep(300000);
  stop = true;
  pthread_join(writer, NULL);
  mongoc_collection_t *c = collection("killed");
  bson_t every = BSON_INITIALIZER;
  mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(c, &every, NULL, NULL);
  int kept = 0, lost = 0;
  while (mongoc_cursor_next(cursor, &found)) {
    int64_t n = number(found, "_id");
    kept += acknowledged[n];
    acknowledged[n] = false;
  }
  CHECK(!mongoc_cursor_error(cursor, &error));
  for (int n = 0; n < 1 << 20; n++) lost += acknowledged[n];
  CHECK(kept > 10 && lost == 0);
  mongoc_cursor_destroy(cursor);
  mongoc_collection_destroy(c);
}

static int passed, failed;

static void check(const char *name, void (*body)(void)) {
  failure = NULL;
  body();
  if (failure) {
    failed++;
    printf("FAILED %s %s\n", name, failure);
  } else {
    passed++;
    printf("ok %s\n", name);
  }
}

int main(void) {
  mongoc_init();
  mongoc_uri_t *uri = mongoc_uri_new(getenv("MONGO_URI"));
  pool = mongoc_client_pool_new(uri);
  mongoc_client_pool_set_error_api(pool, MONGOC_ERROR_API_VERSION_2);
  client = mongoc_client_pool_pop(pool);
  check("single writes", single_writes);
  check("cursors", cursors);
  check("bulks", bulks);
  check("duplicates", duplicates);
  check("indexes and pipelines", indexes_and_pipelines);
  check("find and modify", find_and_modify);
  check("types", types);
  check("workers", workers);
  check("compressed", compressed);
  check("sessions and refusals", sessions_and_refusals);
  check("gridfs", gridfs);
  check("a killed server", a_killed_server);
  mongoc_client_pool_push(pool, client);
  mongoc_client_pool_destroy(pool);
  mongoc_uri_destroy(uri);
  mongoc_cleanup();
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
