/* What event listeners are told, by whom, and until when. A function that is told something asks the database, which must not
   lock up; the main thread waits for events, as they come from threads of the database. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int sealed, begun, flushed, compactions_begun, compacted, ingested, destroyed, strange;
static char* err = NULL;

#define TELL(counter)            \
  do {                           \
    pthread_mutex_lock(&lock);   \
    (counter)++;                 \
    pthread_cond_signal(&changed); \
    pthread_mutex_unlock(&lock); \
  } while (0)

static void wait_for(const int* counter, int least) {
  pthread_mutex_lock(&lock);
  while (*counter < least) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

static void check(int holds, const char* what) {
  if (holds) return;
  printf("strange: %s\n", what);
  strange++;
}

static int is(const char* found, size_t len, const char* wanted) {
  return found && len == strlen(wanted) && memcmp(found, wanted, len) == 0;
}

/* A table's path ends in its number. */
static int names(const char* path, size_t len, uint64_t number) {
  char end[32];
  snprintf(end, sizeof end, "/%06llu.sst", (unsigned long long)number);
  return path && len > strlen(end) && memcmp(path + len - strlen(end), end, strlen(end)) == 0;
}

/* Asks the database that an event is of. */
static void ask(rocksdb_t* db) {
  char* wrong = NULL;
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  size_t len;
  char* value = rocksdb_get(db, reads, "a", 1, &len, &wrong);
  check(!wrong && is(value, len, "1"), "a get in an event");
  free(value);
  char* property = rocksdb_property_value(db, "rocksdb.num-files-at-level0");
  check(property != NULL, "a property in an event");
  free(property);
  rocksdb_iterator_t* walk = rocksdb_create_iterator(db, reads);
  rocksdb_iter_seek_to_first(walk);
  check(rocksdb_iter_valid(walk), "a walk in an event");
  rocksdb_iter_destroy(walk);
  rocksdb_readoptions_destroy(reads);
}

static void ended(void* state) { check(state == &lock, "the state"); destroyed++; }

static void on_flush_begun(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  size_t len;
  const char* name = rocksdb_flushjobinfo_cf_name(info, &len);
  check(state == &lock && is(name, len, "default"), "the family of a flush");
  ask(db);
  TELL(begun);
}

static void on_flushed(void* state, rocksdb_t* db, const rocksdb_flushjobinfo_t* info) {
  (void)state;
  size_t len;
  const char* path = rocksdb_flushjobinfo_file_path(info, &len);
  check(names(path, len, rocksdb_flushjobinfo_file_number(info)), "the path of a flush");
  check(rocksdb_flushjobinfo_cf_id(info) == 0, "the number of a family");
  check(rocksdb_flushjobinfo_smallest_seqno(info) > 0 &&
            rocksdb_flushjobinfo_largest_seqno(info) >= rocksdb_flushjobinfo_smallest_seqno(info),
        "sequence numbers");
  check(begun > flushed, "a flush that ends before it begins");
  ask(db);
  TELL(flushed);
}

static void on_compaction_begun(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)state; (void)db;
  check(rocksdb_compactionjobinfo_num_input_files(info) > 0, "inputs");
  check(rocksdb_compactionjobinfo_output_files_count(info) == 0, "outputs before there are some");
  TELL(compactions_begun);
}

static void on_compacted(void* state, rocksdb_t* db, const rocksdb_compactionjobinfo_t* info) {
  (void)state;
  char* wrong = NULL;
  size_t len, inputs = rocksdb_compactionjobinfo_input_files_count(info);
  const char* name = rocksdb_compactionjobinfo_cf_name(info, &len);
  check(is(name, len, "default") && rocksdb_compactionjobinfo_cf_id(info) == 0, "the family of a compaction");
  rocksdb_compactionjobinfo_status(info, &wrong);
  check(!wrong && !rocksdb_compactionjobinfo_aborted(info), "the status of a compaction");
  check(inputs == rocksdb_compactionjobinfo_input_file_infos_count(info), "counts of inputs");
  for (size_t at = 0; at < inputs; at++) {
    const rocksdb_compaction_file_info_t* file = rocksdb_compactionjobinfo_input_file_info_at(info, at);
    const char* path = rocksdb_compactionjobinfo_input_file_at(info, at, &len);
    check(names(path, len, rocksdb_compaction_file_info_file_number(file)), "the path of an input");
    check(rocksdb_compaction_file_info_level(file) >= rocksdb_compactionjobinfo_base_input_level(info), "an input's level");
  }
  size_t outputs = rocksdb_compactionjobinfo_output_files_count(info);
  for (size_t at = 0; at < outputs; at++) {
    const rocksdb_compaction_file_info_t* file = rocksdb_compactionjobinfo_output_file_info_at(info, at);
    const char* path = rocksdb_compactionjobinfo_output_file_at(info, at, &len);
    check(names(path, len, rocksdb_compaction_file_info_file_number(file)), "the path of an output");
    check(rocksdb_compaction_file_info_level(file) == rocksdb_compactionjobinfo_output_level(info), "an output's level");
  }
  check(rocksdb_compactionjobinfo_input_file_at(info, inputs, &len) == NULL && len == 0, "past the inputs");
  check(rocksdb_compactionjobinfo_output_file_info_at(info, outputs) == NULL, "past the outputs");
  check(compactions_begun > compacted, "a compaction that ends before it begins");
  ask(db);
  TELL(compacted);
}

static void on_ingested(void* state, rocksdb_t* db, const rocksdb_externalfileingestioninfo_t* info) {
  (void)state;
  size_t len;
  const char* path = rocksdb_externalfileingestioninfo_external_file_path(info, &len);
  check(len > 13 && memcmp(path + len - 13, "-external.sst", 13) == 0, "the path of an external table");
  path = rocksdb_externalfileingestioninfo_internal_file_path(info, &len);
  check(len > 4 && memcmp(path + len - 4, ".sst", 4) == 0, "its new path");
  check(rocksdb_externalfileingestioninfo_global_seqno(info) == rocksdb_get_latest_sequence_number(db), "its number");
  path = rocksdb_externalfileingestioninfo_cf_name(info, &len);
  check(is(path, len, "default"), "its family");
  ask(db);
  TELL(ingested);
}

static void on_error(void* state, uint32_t reason, rocksdb_status_ptr_t* status) {
  (void)state; (void)reason;
  rocksdb_status_ptr_get_error(status, &err);
  check(0, err);
  rocksdb_reset_status(status);
}

static void on_sealed(void* state, const rocksdb_memtableinfo_t* info) {
  (void)state;
  size_t len;
  const char* name = rocksdb_memtableinfo_cf_name(info, &len);
  check(is(name, len, "default") && rocksdb_memtableinfo_num_entries(info) == 2, "entries of a memtable");
  check(rocksdb_memtableinfo_num_deletes(info) == 1, "deletions of a memtable");
  TELL(sealed);
}

static rocksdb_eventlistener_t* listener(void) {
  return rocksdb_eventlistener_create(&lock, ended, on_flush_begun, on_flushed, on_compaction_begun, on_compacted, NULL, NULL,
                                      on_ingested, on_error, NULL, on_sealed);
}

int main(int count, char** arguments) {
  if (count < 2) return 2;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_disable_auto_compactions(options, 1);
  rocksdb_options_add_eventlistener(options, listener());
  rocksdb_t* db = rocksdb_open(options, arguments[1], &err);
  for (int round = 1; round <= 2; round++) {
    rocksdb_put(db, writes, "a", 1, "1", 1, &err);
    rocksdb_delete(db, writes, "b", 1, &err);
    rocksdb_flush(db, flush, &err);
    wait_for(&flushed, round);
  }
  printf("%d memtables, %d flushes begun, %d ended\n", sealed, begun, flushed);
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  wait_for(&compacted, 1);
  printf("compactions: %d\n", compacted > 0 && compactions_begun >= compacted);

  char path[2048];
  snprintf(path, sizeof path, "%s-external.sst", arguments[1]);
  rocksdb_envoptions_t* env_options = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* table = rocksdb_sstfilewriter_create(env_options, options);
  rocksdb_sstfilewriter_open(table, path, &err);
  rocksdb_sstfilewriter_put(table, "c", 1, "3", 1, &err);
  rocksdb_sstfilewriter_finish(table, &err);
  rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
  const char* paths[1] = {path};
  rocksdb_ingest_external_file(db, paths, 1, ingest, &err);
  wait_for(&ingested, 1);
  printf("ingested: %d\n", ingested);
  /* It has a copy of the options. */
  rocksdb_sstfilewriter_destroy(table);
  /* Two databases share it, and the options may go before them. */
  snprintf(path, sizeof path, "%s-other", arguments[1]);
  rocksdb_t* other = rocksdb_open(options, path, &err);
  rocksdb_options_destroy(options);
  printf("while they are open: %d destroyed\n", destroyed);
  rocksdb_close(db);
  rocksdb_put(other, writes, "a", 1, "1", 1, &err);
  rocksdb_delete(other, writes, "b", 1, &err);
  rocksdb_flush(other, flush, &err);
  wait_for(&flushed, 3);
  printf("after one is closed: %d destroyed, %d flushes\n", destroyed, flushed);
  rocksdb_close(other);
  printf("in the end: %d destroyed\n", destroyed);
  /* One that is given to nobody. */
  rocksdb_eventlistener_destroy(listener());
  printf("given to nobody: %d destroyed\n", destroyed);
  printf("%d strange, %s\n", strange, err ? err : "no error");
  return 0;
}
