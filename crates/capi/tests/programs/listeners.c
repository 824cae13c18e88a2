/* What event listeners are told, by whom, and until when. A function that is told something asks the database, which must not
   lock up; the main thread waits for events, as they come from threads of the database. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int subcompactions_begun, subcompacted, sealed, begun, flushed, compactions_begun, compacted, ingested, destroyed, strange;
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

/* What a table says of itself. */
static void properties(const rocksdb_table_properties_t* of, uint64_t entries, uint64_t deletions, const char* where) {
  size_t len;
  check(of != NULL, where);
  check(rocksdb_table_properties_num_entries(of) == entries, where);
  check(rocksdb_table_properties_num_deletions(of) == deletions, where);
  check(rocksdb_table_properties_raw_key_size(of) == 9 * entries, "bytes of keys and their tags");
  check(rocksdb_table_properties_num_data_blocks(of) == 1 && rocksdb_table_properties_data_size(of) > 0, "blocks");
  const char* family = rocksdb_table_properties_column_family_name(of, &len);
  check(is(family, len, "default"), "the family of a table");
  const char* order = rocksdb_table_properties_comparator_name(of, &len);
  check(is(order, len, "leveldb.BytewiseComparator"), "the order of a table");
  check(rocksdb_table_properties_uncompressed_data_size(of) == 0 && rocksdb_table_properties_num_uniform_blocks(of) == 0,
        "what is not stored");
  size_t own = rocksdb_table_properties_user_collected_properties_count(of);
  for (size_t at = 0; at < own; at++) {
    check(rocksdb_table_properties_user_collected_properties_key_at(of, at, &len) && len > 0, "the name of a property");
    check(rocksdb_table_properties_user_collected_properties_value_at(of, at, &len) != NULL, "a property");
  }
  check(!rocksdb_table_properties_user_collected_properties_key_at(of, own, &len), "past the properties");
  check(rocksdb_table_properties_readable_properties_count(of) == 0, "properties in words");
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
  if (rocksdb_flushjobinfo_file_number(info)) {
    const rocksdb_table_properties_t* table = rocksdb_flushjobinfo_table_properties(info);
    properties(table, 2, 1, "the table of a flush");
    check(rocksdb_table_properties_orig_file_number(table) == rocksdb_flushjobinfo_file_number(info), "its number");
  }
  check(rocksdb_flushjobinfo_job_id(info) > 0 && rocksdb_flushjobinfo_thread_id(info) != 0, "the job of a flush");
  check(!rocksdb_flushjobinfo_triggered_writes_slowdown(info) && !rocksdb_flushjobinfo_triggered_writes_stop(info), "a stop");
  check(rocksdb_flushjobinfo_blob_file_addition_infos_count(info) == 0, "blob files of a flush");
  check(rocksdb_flushjobinfo_blob_file_addition_info_at(info, 0) == NULL, "past the blob files");
  check(rocksdb_flushjobinfo_oldest_blob_file_number(info) == 0, "the oldest blob file");
  check(rocksdb_flushjobinfo_blob_compression_type(info) == rocksdb_snappy_compression, "the compression of blobs");
  ask(db);
  TELL(flushed);
}

static void on_subcompaction_begun(void* state, const rocksdb_subcompactionjobinfo_t* info) {
  check(state == &lock && rocksdb_subcompactionjobinfo_job_id(info) > 0, "the job of a part");
  check(compactions_begun == subcompactions_begun + 1, "a part before its compaction");
  TELL(subcompactions_begun);
}

static void on_subcompacted(void* state, const rocksdb_subcompactionjobinfo_t* info) {
  (void)state;
  char* wrong = NULL;
  size_t len;
  rocksdb_subcompactionjobinfo_status(info, &wrong);
  const char* family = rocksdb_subcompactionjobinfo_cf_name(info, &len);
  check(!wrong && is(family, len, "default"), "a part");
  check(rocksdb_compaction_job_stats_num_output_records(rocksdb_subcompactionjobinfo_stats(info)) == 1, "rows of a part");
  check(rocksdb_subcompactionjobinfo_compaction_reason(info) == 9, "why there is a part");
  check(rocksdb_subcompactionjobinfo_blob_compression_type(info) == rocksdb_snappy_compression, "the compression of blobs");
  TELL(subcompacted);
}

/* Two tables of a row and a deletion each become one of a row. */
static void statistics(const rocksdb_compactionjobinfo_t* info) {
  size_t len, tables = rocksdb_compactionjobinfo_table_properties_count(info);
  uint64_t entries = 0;
  check(tables == rocksdb_compactionjobinfo_input_files_count(info) + rocksdb_compactionjobinfo_output_files_count(info),
        "properties of inputs and outputs");
  for (size_t at = 0; at < tables; at++) {
    const char* path = rocksdb_compactionjobinfo_table_properties_key_at(info, at, &len);
    const rocksdb_table_properties_t* table = rocksdb_compactionjobinfo_table_properties_value_at(info, at);
    check(table && table == rocksdb_compactionjobinfo_table_properties_for_file(info, path, len), "properties by a path");
    entries += rocksdb_table_properties_num_entries(table);
  }
  check(entries == 4 + 1, "entries of the tables");
  check(!rocksdb_compactionjobinfo_table_properties_for_file(info, "none", 4), "properties of no table");
  check(rocksdb_compactionjobinfo_input_records(info) == 4 && rocksdb_compactionjobinfo_output_records(info) == 1, "records");
  check(rocksdb_compactionjobinfo_compaction_reason(info) == 9 && rocksdb_compactionjobinfo_num_corrupt_keys(info) == 0, "a reason");
  check(rocksdb_compactionjobinfo_num_l0_files(info) == 0 && rocksdb_compactionjobinfo_thread_id(info) != 0, "level 0");
  check(rocksdb_compactionjobinfo_compression(info) != 255, "the compression");
  check(rocksdb_compactionjobinfo_blob_compression_type(info) == rocksdb_snappy_compression, "the compression of blobs");
  const rocksdb_compaction_job_stats_t* stats = rocksdb_compactionjobinfo_stats(info);
  check(rocksdb_compaction_job_stats_num_input_records(stats) == 4, "input records");
  check(rocksdb_compaction_job_stats_has_accurate_num_input_records(stats), "input records are counted");
  check(rocksdb_compaction_job_stats_num_input_deletion_records(stats) == 2, "input deletions");
  check(rocksdb_compaction_job_stats_num_expired_deletion_records(stats) == 2, "deletions that are gone");
  check(rocksdb_compaction_job_stats_num_records_replaced(stats) == 1, "rows that are gone");
  check(rocksdb_compaction_job_stats_num_output_records(stats) == 1, "output records");
  check(rocksdb_compaction_job_stats_total_input_raw_key_bytes(stats) == 36, "bytes of keys and their tags");
  check(rocksdb_compaction_job_stats_total_input_raw_value_bytes(stats) == 2, "bytes of values");
  check(rocksdb_compaction_job_stats_is_manual_compaction(stats) && rocksdb_compaction_job_stats_is_full_compaction(stats),
        "a compaction of all that was asked for");
  check(rocksdb_compaction_job_stats_num_input_files(stats) == 2 && rocksdb_compaction_job_stats_num_output_files(stats) == 1,
        "tables");
  const char* key = rocksdb_compaction_job_stats_smallest_output_key_prefix(stats, &len);
  check(is(key, len, "a"), "the smallest key");
  key = rocksdb_compaction_job_stats_largest_output_key_prefix(stats, &len);
  check(is(key, len, "a"), "the largest key");
  check(rocksdb_compaction_job_stats_total_output_bytes(stats) > 0 && rocksdb_compaction_job_stats_num_output_files_blob(stats) == 0,
        "bytes written");
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
    check(rocksdb_compaction_file_info_oldest_blob_file_number(file) == 0, "the oldest blob file of an input");
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
  check(subcompacted == compacted + 1, "a compaction that ends before its part");
  statistics(info);
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
  const rocksdb_table_properties_t* table = rocksdb_externalfileingestioninfo_table_properties(info);
  check(table && rocksdb_table_properties_num_entries(table) == 1, "its rows");
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
  /* Its two writes come after all that was written before it. */
  check(rocksdb_memtableinfo_first_seqno(info) == rocksdb_memtableinfo_earliest_seqno(info) + 1, "where a memtable begins");
  check(rocksdb_memtableinfo_newest_udt(info, &len) && len == 0, "timestamps of a memtable");
  TELL(sealed);
}

static int stalls, stops, condition = 2; /* 0 slowed, 1 stopped, 2 neither */

static void on_stall(void* state, const rocksdb_writestallinfo_t* info) {
  size_t len;
  const char* name = rocksdb_writestallinfo_cf_name(info, &len);
  int before = *(const int*)rocksdb_writestallinfo_prev(info), now = *(const int*)rocksdb_writestallinfo_cur(info);
  check(state == &lock && is(name, len, "default"), "the family of a stall");
  check(before == condition && now != before && now >= 0 && now <= 2, "a stall that does not follow the one before");
  condition = now;
  if (now == 1) TELL(stops);
  TELL(stalls);
}

static rocksdb_t* stalled;

static void* write_much(void* state) {
  (void)state;
  char value[1000] = {0}, *wrong = NULL;
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  for (int at = 0; at < 1000; at++) rocksdb_put(stalled, writes, (char*)&at, sizeof at, value, sizeof value, &wrong);
  check(wrong == NULL, "a write that waits");
  rocksdb_writeoptions_destroy(writes);
  return NULL;
}

/* Nothing is flushed while the background is paused: the writer stops. */
static void stall(const char* dir) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_write_buffer_size(options, 128 << 10);
  rocksdb_options_set_max_write_buffer_number(options, 2);
  rocksdb_options_add_eventlistener(options, rocksdb_eventlistener_create(&lock, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL,
                                                                          NULL, on_stall, NULL));
  stalled = rocksdb_open(options, dir, &err);
  rocksdb_pause_background_work(stalled, &err);
  pthread_t writer;
  pthread_create(&writer, NULL, write_much, NULL);
  /* Events are told when a call ends, and the writer's does not. */
  while (*(volatile int*)&stops == 0) free(rocksdb_property_value(stalled, "rocksdb.num-files-at-level0"));
  rocksdb_continue_background_work(stalled, &err);
  pthread_join(writer, NULL);
  rocksdb_close(stalled);
  printf("stopped: %d, and in the end not: %d\n", stops > 0 && stalls > stops, condition != 1);
  rocksdb_options_destroy(options);
}

static rocksdb_eventlistener_t* listener(void) {
  return rocksdb_eventlistener_create(&lock, ended, on_flush_begun, on_flushed, on_compaction_begun, on_compacted,
                                      on_subcompaction_begun, on_subcompacted,
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
  snprintf(path, sizeof path, "%s-stalled", arguments[1]);
  stall(path);
  printf("%d strange, %s\n", strange, err ? err : "no error");
  return 0;
}
