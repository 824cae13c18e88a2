/* What versions of RocksDB after 7.8 added, over a directory of its own: tells what it finds, a line each. The numbers of counts
   are those of the version that the header is of. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static char* err = NULL;
static rocksdb_t* db;
static rocksdb_options_t* options;
static rocksdb_writeoptions_t* writes;
static rocksdb_readoptions_t* reads;

/* Tells the error, if there is one, up to its first sentence. */
static void told(const char* what) {
  printf("%s: %s\n", what, err ? err : "ok");
  free(err);
  err = NULL;
}

static void put(rocksdb_column_family_handle_t* family, const char* key, const char* value) {
  if (family) {
    rocksdb_put_cf(db, writes, family, key, strlen(key), value, strlen(value), &err);
  } else {
    rocksdb_put(db, writes, key, strlen(key), value, strlen(value), &err);
  }
  if (err) told("put");
}

/* WAL files, the bytes of files, and notes of backups. */
static void files(const char* dir, rocksdb_sst_file_manager_t* manager) {
  rocksdb_wal_files_t* wals = rocksdb_get_sorted_wal_files(db, &err);
  told("WAL files");
  size_t count = rocksdb_wal_files_count(wals);
  rocksdb_wal_file_t* last = rocksdb_get_current_wal_file(db, &err);
  told("the last one");
  int ascend = 1, same = 0;
  for (size_t at = 0; at < count; at++) {
    const rocksdb_wal_file_t* wal = rocksdb_wal_files_get_wal_file(wals, at);
    char name[32];
    snprintf(name, sizeof name, "/%06" PRIu64 ".log", rocksdb_wal_file_log_number(wal));
    ascend &= strcmp(name, rocksdb_wal_file_path_name(wal)) == 0 && rocksdb_wal_file_type(wal) == 1;
    if (at) ascend &= rocksdb_wal_file_log_number(wal) > rocksdb_wal_file_log_number(rocksdb_wal_files_get_wal_file(wals, at - 1));
    same = rocksdb_wal_file_log_number(wal) == rocksdb_wal_file_log_number(last);
  }
  put(NULL, "logged", "1");
  uint64_t newest = rocksdb_get_latest_sequence_number(db);
  rocksdb_wal_file_t* live = rocksdb_get_current_wal_file(db, &err);
  printf("begins with a write: %d\n", rocksdb_wal_file_start_sequence(live) > 0 && rocksdb_wal_file_start_sequence(live) <= newest);

  printf("%d in order, the last one %d of %d bytes, past it %d\n", ascend && count > 0, same,
         rocksdb_wal_file_size_file_bytes(live) > 0, rocksdb_wal_files_get_wal_file(wals, count) == NULL);
  rocksdb_wal_file_destroy(live);
  rocksdb_wal_file_destroy(last);
  rocksdb_wal_files_destroy(wals);
  rocksdb_wal_files_destroy(NULL);

  rocksdb_livefiles_t const* tables = rocksdb_livefiles(db);
  uint64_t bytes = 0;
  for (int at = 0; at < rocksdb_livefiles_count(tables); at++) bytes += rocksdb_livefiles_size(tables, at);
  rocksdb_livefiles_destroy(tables);
  printf("bytes of tables: %d, no most is reached: %d\n", rocksdb_sst_file_manager_get_total_size(manager) == bytes,
         !rocksdb_sst_file_manager_is_max_allowed_space_reached(manager));
  rocksdb_sst_file_manager_set_delete_rate_bytes_per_second(manager, 5);
  printf("rate %" PRId64 ", ratio %.2f, trash %" PRIu64 "\n", rocksdb_sst_file_manager_get_delete_rate_bytes_per_second(manager),
         rocksdb_sst_file_manager_get_max_trash_db_ratio(manager), rocksdb_sst_file_manager_get_total_trash_size(manager));

  char place[2048];
  snprintf(place, sizeof place, "%s-noted", dir);
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open(options, place, &err);
  told("backups");
  uint32_t id = 0;
  rocksdb_backup_engine_create_new_backup_with_metadata(engine, db, NULL, "before\0noon", 11, &id, &err);
  told("a backup with a note");
  rocksdb_backup_engine_create_new_backup_with_metadata(engine, db, NULL, NULL, 7, NULL, &err);
  told("one without");
  const rocksdb_backup_engine_info_t* infos = rocksdb_backup_engine_get_backup_info(engine);
  size_t len = 9, none = 9;
  const char* note = rocksdb_backup_engine_info_app_metadata(infos, 0, &len);
  printf("backup %u: %d\n", id, len == 11 && memcmp(note, "before\0noon", 11) == 0);
  rocksdb_backup_engine_info_app_metadata(infos, 1, &none);
  printf("the other one: %zu\n", none);
  rocksdb_backup_engine_info_destroy(infos);
  rocksdb_backup_engine_stop_backup(engine);
  rocksdb_backup_engine_create_new_backup(engine, db, &err);
  printf("stopped: %d\n", err != NULL);
  free(err);
  err = NULL;
  rocksdb_backup_engine_close(engine);
}

static void progressed(void* state) { ++*(int*)state; }

static unsigned char first_left_out(void* state, const char* path, size_t len) {
  if (len < 20 || strncmp(path, "shared_checksum/", 16)) return 0;
  return ++*(int*)state == 1;
}

/* A backup that leaves out a file, told of while it is made. */
static void partly(const char* dir) {
  char place[2048];
  snprintf(place, sizeof place, "%s-partly", dir);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_backup_engine_options_t* how = rocksdb_backup_engine_options_create(place);
  rocksdb_backup_engine_options_set_callback_trigger_interval_size(how, 100);
  rocksdb_create_backup_options_t* asked = rocksdb_create_backup_options_create();
  int steps = 0, paths = 0;
  rocksdb_create_backup_options_set_progress_callback(asked, &steps, progressed);
  rocksdb_create_backup_options_set_exclude_files_callback(asked, &paths, first_left_out);
  rocksdb_create_backup_options_set_flush_before_backup(asked, 1);
  rocksdb_backup_engine_t* engine = rocksdb_backup_engine_open_opts(how, env, &err);
  rocksdb_backup_engine_create_new_backup_with_options(engine, db, asked, NULL, &err);
  told("without its schema");
  rocksdb_backup_engine_close(engine);
  rocksdb_backup_engine_options_set_schema_version(how, 2);
  engine = rocksdb_backup_engine_open_opts(how, env, &err);
  uint32_t id = 0;
  rocksdb_backup_engine_create_new_backup_with_options(engine, db, asked, &id, &err);
  told("partly");
  const rocksdb_backup_engine_info_t* infos = rocksdb_backup_engine_get_backup_info(engine);
  printf("listed: %d, asked %d, steps %d\n", rocksdb_backup_engine_info_count(infos), paths > 0, steps > 10);
  uint32_t files = rocksdb_backup_engine_info_number_files(infos, 0);
  rocksdb_backup_engine_info_destroy(infos);
  rocksdb_create_backup_options_set_exclude_files_callback(asked, NULL, NULL);
  rocksdb_create_backup_options_set_progress_callback(asked, NULL, NULL);
  steps = 0;
  rocksdb_backup_engine_create_new_backup_with_options(engine, db, asked, &id, &err);
  told("whole");
  infos = rocksdb_backup_engine_get_backup_info(engine);
  printf("one more: %d, untold: %d\n", rocksdb_backup_engine_info_number_files(infos, 1) == files + 1, steps == 0);
  rocksdb_backup_engine_info_destroy(infos);
  rocksdb_restore_options_t* restore = rocksdb_restore_options_create();
  rocksdb_backup_engine_restore_db_from_backup(engine, place, place, restore, 1, &err);
  printf("not restored: %d\n", err && !strncmp(err, "Not implemented: ", 17));
  free(err);
  err = NULL;
  rocksdb_restore_options_destroy(restore);
  rocksdb_create_backup_options_destroy(asked);
  rocksdb_backup_engine_close(engine);
  rocksdb_backup_engine_options_destroy(how);
  rocksdb_env_destroy(env);
}

static void lines(void* state, unsigned level, char* text, size_t len) {
  (void)level;
  if (strlen(text) == len) ++*(int*)state;
}

static void values(void) {
  char buffer[8];
  size_t len = 99;
  unsigned char found = 9;
  unsigned char fits = rocksdb_get_into_buffer(db, reads, "apple", 5, buffer, sizeof buffer, &len, &found, &err);
  printf("into a buffer: %d %d %.*s\n", fits, found, (int)len, buffer);
  fits = rocksdb_get_into_buffer(db, reads, "apple", 5, buffer, 2, &len, &found, &err);
  printf("into a small one: %d %d %zu\n", fits, found, len);
  fits = rocksdb_get_into_buffer(db, reads, "none", 4, buffer, sizeof buffer, &len, &found, &err);
  printf("of no key: %d %d %zu\n", fits, found, len);
  rocksdb_pinnable_handle_t* pinned = rocksdb_get_pinned_v2(db, reads, "pear", 4, &err);
  const char* value = rocksdb_pinnable_handle_get_value(pinned, &len);
  printf("pinned: %.*s\n", (int)len, value);
  rocksdb_pinnable_handle_destroy(pinned);
  pinned = rocksdb_get_pinned_v2(db, reads, "none", 4, &err);
  printf("pinned none: %d\n", pinned == NULL);
  rocksdb_pinnable_handle_destroy(pinned);
  told("values");
}

static void lists(void) {
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  rocksdb_slice_t keys[3] = {{"apple", 5}, {"none", 4}, {"pear", 4}};
  rocksdb_pinnableslice_t* values[3];
  char* errs[3];
  rocksdb_batched_multi_get_cf_slice(db, reads, family, 3, keys, values, errs, false);
  for (int at = 0; at < 3; at++) {
    size_t len = 0;
    const char* value = values[at] ? rocksdb_pinnableslice_value(values[at], &len) : "-";
    printf("slice %d: %.*s %d\n", at, values[at] ? (int)len : 1, value, errs[at] == NULL);
    rocksdb_pinnableslice_destroy(values[at]);
  }
  rocksdb_pinnable_multi_get_t* list = rocksdb_batched_multi_get_pinned_cf(db, reads, family, 3, keys, 0);
  printf("list: %zu\n", rocksdb_pinnable_multi_get_count(list));
  for (size_t at = 0; at < 4; at++) {
    const char *value, *error;
    size_t len, error_len;
    int what = rocksdb_pinnable_multi_get_result(list, at, &value, &len, &error, &error_len);
    printf("entry %zu: %d %.*s %zu\n", at, what, (int)len, value ? value : "", error_len);
  }
  rocksdb_pinnable_multi_get_destroy(list);
  rocksdb_column_family_handle_destroy(family);
}

static void walks(void) {
  rocksdb_iterator_t* walk = rocksdb_create_iterator(db, reads);
  put(NULL, "quince", "gold");
  rocksdb_iter_seek(walk, "pq", 2);
  printf("a walk sees what was there: %d\n", rocksdb_iter_valid(walk));
  rocksdb_iter_refresh(walk, &err);
  told("refresh");
  rocksdb_iter_seek(walk, "pq", 2);
  rocksdb_slice_t key = rocksdb_iter_key_slice(walk), value = rocksdb_iter_value_slice(walk);
  printf("refreshed: %.*s %.*s %zu\n", (int)key.size, key.data, (int)value.size, value.data,
         rocksdb_iter_timestamp_slice(walk).size);
  rocksdb_iter_destroy(walk);
  const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
  printf("snapshot: %d\n", rocksdb_snapshot_get_sequence_number(snapshot) == rocksdb_get_latest_sequence_number(db));
  rocksdb_release_snapshot(db, snapshot);
}

static void put_of(void* state, uint32_t family, const char* key, size_t len, const char* value, size_t value_len) {
  printf("%s %u %.*s=%.*s\n", (const char*)state, family, (int)len, key, (int)value_len, value);
}

static void deleted_of(void* state, uint32_t family, const char* key, size_t len) {
  printf("%s %u -%.*s\n", (const char*)state, family, (int)len, key);
}

static void log_data(void* state, const char* data, size_t len) {
  printf("%s log %.*s\n", (const char*)state, (int)len, data);
}

static void put_plain(void* state, const char* key, size_t len, const char* value, size_t value_len) {
  put_of(state, 0, key, len, value, value_len);
}

static void deleted_plain(void* state, const char* key, size_t len) { deleted_of(state, 0, key, len); }

static void batches(rocksdb_column_family_handle_t* family) {
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create_with_params(100, 0, 0, 0);
  rocksdb_writebatch_put(batch, "a", 1, "1", 1);
  rocksdb_writebatch_put_log_data(batch, "note", 4);
  rocksdb_writebatch_delete_cf(batch, family, "b", 1);
  rocksdb_writebatch_merge_cf(batch, family, "c", 1, "3", 1);
  rocksdb_writebatch_iterate_cf(batch, "cf", put_of, deleted_of, put_of);
  rocksdb_writebatch_iterate_cf_ld(batch, "ld", put_of, deleted_of, put_of, log_data);
  rocksdb_writebatch_verify_checksum(batch, &err);
  told("a batch");
  rocksdb_writebatch_destroy(batch);
  batch = rocksdb_writebatch_create_with_params(0, 0, 0, 8);
  rocksdb_write(db, writes, batch, &err);
  told("with timestamps");
  rocksdb_writebatch_destroy(batch);
}

static void families(const char* dir) {
  const char* names[3] = {"one", "two", "one"};
  size_t count = 0;
  rocksdb_column_family_handle_t** made = rocksdb_create_column_families(db, options, 3, names, &count, &err);
  told("families");
  printf("made: %zu\n", count);
  put(made[0], "k1", "v1");
  put(made[0], "k2", "v2");
  batches(made[1]);

  rocksdb_flushoptions_t* flush = rocksdb_flushoptions_create();
  rocksdb_flush_cfs(db, flush, made, (int)count, &err);
  told("flush");
  rocksdb_flushoptions_destroy(flush);
  rocksdb_column_family_metadata_options_t* asked = rocksdb_column_family_metadata_options_create();
  rocksdb_column_family_metadata_options_set_end_key(asked, "k0", 2);
  rocksdb_column_family_metadata_t* found = rocksdb_get_column_family_metadata_cf_with_options(db, made[0], asked);
  printf("tables below k0: %zu\n", rocksdb_column_family_metadata_get_file_count(found));
  rocksdb_column_family_metadata_destroy(found);
  rocksdb_column_family_metadata_options_set_end_key(asked, "k1", 2);
  found = rocksdb_get_column_family_metadata_cf_with_options(db, made[0], asked);
  printf("up to k1: %zu\n", rocksdb_column_family_metadata_get_file_count(found));
  rocksdb_column_family_metadata_destroy(found);
  rocksdb_column_family_metadata_options_set_level(asked, 3);
  found = rocksdb_get_column_family_metadata_cf_with_options(db, made[0], asked);
  printf("of level 3: %zu\n", rocksdb_column_family_metadata_get_file_count(found));
  rocksdb_column_family_metadata_destroy(found);
  rocksdb_column_family_metadata_options_destroy(asked);

  char place[1024];
  snprintf(place, sizeof place, "%s-export", dir);
  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
  rocksdb_export_import_files_metadata_t* exported =
      rocksdb_checkpoint_export_column_family(checkpoint, made[0], place, &err);
  told("export");
  char* order = rocksdb_export_import_files_metadata_get_db_comparator_name(exported);
  rocksdb_livefiles_t* files = rocksdb_export_import_files_metadata_get_files(exported);
  printf("exported: %s %d %s %d\n", order, rocksdb_livefiles_count(files),
         strcmp(rocksdb_livefiles_directory(files, 0), place) ? "elsewhere" : "there",
         rocksdb_livefiles_largest_seqno(files, 0) >= rocksdb_livefiles_smallest_seqno(files, 0));
  free(order);
  rocksdb_livefiles_destroy(files);

  rocksdb_import_column_family_options_t* import = rocksdb_import_column_family_options_create();
  rocksdb_column_family_handle_t* again =
      rocksdb_create_column_family_with_import(db, options, "again", import, exported, &err);
  told("import");
  size_t len;
  char* value = rocksdb_get_cf(db, reads, again, "k2", 2, &len, &err);
  printf("imported: %.*s\n", (int)len, value);
  free(value);
  rocksdb_column_family_handle_destroy(again);

  /* The same by hand, with another order. */
  rocksdb_livefiles_t* list = rocksdb_livefiles_create();
  rocksdb_livefile_t* file = rocksdb_livefile_create();
  rocksdb_livefile_set_directory(file, place);
  rocksdb_livefile_set_name(file, "/000001.sst");
  rocksdb_livefiles_add(list, file);
  rocksdb_export_import_files_metadata_t* mine = rocksdb_export_import_files_metadata_create();
  rocksdb_export_import_files_metadata_set_files(mine, list);
  rocksdb_livefiles_destroy(list);
  rocksdb_export_import_files_metadata_set_db_comparator_name(mine, "another");
  again = rocksdb_create_column_family_with_import(db, options, "other", import, mine, &err);
  printf("another order: %d\n", again == NULL);
  told("by hand");
  rocksdb_export_import_files_metadata_destroy(mine);
  rocksdb_export_import_files_metadata_destroy(exported);
  rocksdb_import_column_family_options_destroy(import);
  rocksdb_checkpoint_object_destroy(checkpoint);
  for (size_t at = 0; at < count; at++) rocksdb_column_family_handle_destroy(made[at]);
  rocksdb_create_column_families_destroy(made);
}

static void upkeep(void) {
  rocksdb_wait_for_compact_options_t* wait = rocksdb_wait_for_compact_options_create();
  rocksdb_wait_for_compact_options_set_flush(wait, 1);
  rocksdb_wait_for_compact(db, wait, &err);
  told("wait");
  rocksdb_wait_for_compact_options_destroy(wait);
  rocksdb_verify_checksum(db, &err);
  told("checksums");
  rocksdb_verify_checksum_with_options(db, NULL, &err);
  rocksdb_flush_wal_with_options(db, NULL, &err);
  rocksdb_column_family_metadata_destroy(rocksdb_get_column_family_metadata_with_options(db, NULL));
  told("no options");
  rocksdb_verify_file_checksums(db, &err);
  told("file checksums");
  size_t len = 0;
  char* identity = rocksdb_get_db_identity(db, &len);
  printf("identity: %d\n", len >= 36 && identity);
  free(identity);
  const char *begins[1] = {"a"}, *ends[1] = {"z"};
  size_t lens[1] = {1};
  uint64_t sizes[1] = {0};
  rocksdb_column_family_handle_t* family = rocksdb_get_default_column_family_handle(db);
  rocksdb_approximate_sizes_cf_with_flags(db, family, 1, begins, lens, ends, lens,
                                          rocksdb_size_approximation_flags_include_files, sizes, &err);
  printf("size: %d\n", sizes[0] > 0);
  told("sizes");
  rocksdb_approximate_sizes_cf_with_flags(db, family, 1, begins, lens, ends, lens, 0, sizes, &err);
  told("of nothing");
  rocksdb_column_family_handle_destroy(family);
  rocksdb_pause_background_work(db, &err);
  told("pause");
  rocksdb_continue_background_work(db, &err);
  told("goes on");
  rocksdb_continue_background_work(db, &err);
  told("goes on twice");
}

static void counts(void) {
#if DRUMLIN_ROCKSDB_ABI >= 1108
  const uint32_t written = 58, flush = 50;
#else
  const uint32_t written = 40, flush = 46;
#endif
  printf("written: %" PRIu64 "\n", rocksdb_options_statistics_get_ticker_count(options, written));
  printf("no such: %" PRIu64 "\n", rocksdb_options_statistics_get_ticker_count(options, 9999));
  rocksdb_statistics_histogram_data_t* data = rocksdb_statistics_histogram_data_create();
  rocksdb_options_statistics_get_histogram_data(options, flush, data);
  printf("flushes: %d %d\n", rocksdb_statistics_histogram_data_get_count(data) > 0,
         rocksdb_statistics_histogram_data_get_max(data) >= rocksdb_statistics_histogram_data_get_median(data));
  rocksdb_options_statistics_get_histogram_data(options, 0, data);
  printf("gets: %d\n", rocksdb_statistics_histogram_data_get_count(data) > 0);
  rocksdb_statistics_histogram_data_destroy(data);
  printf("level: %d\n", rocksdb_options_get_statistics_level(options));
}

static void transactions(const char* dir) {
  char place[1024];
  snprintf(place, sizeof place, "%s-transactions", dir);
  rocksdb_transactiondb_options_t* locking = rocksdb_transactiondb_options_create();
  rocksdb_transactiondb_options_set_transaction_lock_timeout(locking, 1);
  rocksdb_transactiondb_options_set_write_policy(locking, 1);
  rocksdb_transactiondb_t* locked = rocksdb_transactiondb_open(options, locking, place, &err);
  told("write_policy");
  rocksdb_transactiondb_options_set_write_policy(locking, 0);
  locked = rocksdb_transactiondb_open(options, locking, place, &err);
  told("transactions");
  rocksdb_transaction_options_t* one = rocksdb_transaction_options_create();
  rocksdb_transaction_t* transaction = rocksdb_transaction_begin(locked, writes, one, NULL);
  const char* keys[2] = {"x", "y"};
  size_t lens[2] = {1, 1}, value_lens[2];
  char *values[2], *errs[2];
  rocksdb_transaction_multi_get_for_update(transaction, reads, 2, keys, lens, values, value_lens, errs);
  printf("both read: %d\n", !errs[0] && !errs[1] && !values[0]);
  rocksdb_transactiondb_put(locked, writes, "y", 1, "1", 1, &err);
  printf("a locked key: %d\n", err && !strncmp(err, "Operation timed out: ", 21));
  free(err);
  err = NULL;
  rocksdb_transaction_rollback(transaction, &err);
  rocksdb_t* base = rocksdb_transactiondb_get_base_db(locked);
  rocksdb_put(base, writes, "y", 1, "2", 1, &err);
  told("the base");
  rocksdb_transactiondb_close_base_db(base);
  transaction = rocksdb_transaction_begin(locked, writes, one, transaction);
  rocksdb_transaction_put_log_data(transaction, "told", 4);
  rocksdb_transaction_put(transaction, "z", 1, "3", 1, &err);
  rocksdb_transaction_set_savepoint(transaction);
  rocksdb_transaction_put_log_data(transaction, "taken back", 10);
  rocksdb_transaction_rollback_to_savepoint(transaction, &err);
  rocksdb_transaction_commit(transaction, &err);
  told("log data");
  rocksdb_transaction_rollback(transaction, &err);
  rocksdb_transaction_commit(transaction, &err);
  told("without anything");
  base = rocksdb_transactiondb_get_base_db(locked);
  rocksdb_wal_iterator_t* updates = rocksdb_get_updates_since(base, 0, NULL, &err);
  rocksdb_transactiondb_close_base_db(base);
  for (; rocksdb_wal_iter_valid(updates); rocksdb_wal_iter_next(updates)) {
    uint64_t seqno;
    rocksdb_writebatch_t* batch = rocksdb_wal_iter_get_batch(updates, &seqno);
    rocksdb_writebatch_iterate_ld(batch, "updates", put_plain, deleted_plain, log_data);
    rocksdb_writebatch_destroy(batch);
  }
  rocksdb_wal_iter_destroy(updates);
  rocksdb_transaction_destroy(transaction);
  rocksdb_transaction_options_destroy(one);
  rocksdb_transactiondb_close(locked);
  rocksdb_transactiondb_options_destroy(locking);
}

/* What cannot be done is said when a database is opened. */
static void refused(const char* dir) {
  rocksdb_options_t* bad = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(bad, 1);
  rocksdb_options_set_best_efforts_recovery(bad, 1);
  rocksdb_open(bad, dir, &err);
  told("refused");
  rocksdb_options_set_best_efforts_recovery(bad, 0);
  rocksdb_options_set_wal_filter(bad, NULL);
  rocksdb_open(bad, dir, &err);
  told("refused");
  rocksdb_options_destroy(bad);
  bad = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(bad, 1);
  rocksdb_dbpath_t* elsewhere = rocksdb_dbpath_create("/nowhere", 1 << 20);
  const rocksdb_dbpath_t* paths[] = {elsewhere};
  rocksdb_options_set_db_paths(bad, paths, 1);
  rocksdb_open(bad, "elsewhere", &err);
  told("refused");
  rocksdb_dbpath_destroy(elsewhere);
  rocksdb_options_destroy(bad);
}

int main(int argc, char** argv) {
  if (argc < 2) return 1;
  int heard = 0;
  options = rocksdb_options_create();
  writes = rocksdb_writeoptions_create();
  reads = rocksdb_readoptions_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_enable_statistics(options);
  rocksdb_options_set_uint64add_merge_operator(options);
  rocksdb_logger_t* logger = rocksdb_logger_create_callback_logger(0, lines, &heard);
  rocksdb_options_set_info_log(options, logger);
  rocksdb_logger_destroy(logger);
  logger = rocksdb_options_get_info_log(options);
  rocksdb_logger_destroy(logger);
  rocksdb_write_buffer_manager_t* manager = rocksdb_write_buffer_manager_create(8 << 20, false);
  rocksdb_options_set_write_buffer_manager(options, manager);
  rocksdb_cache_t* cache = rocksdb_cache_create_hyper_clock(32 << 20, 0);
  rocksdb_block_based_table_options_t* blocks = rocksdb_block_based_options_create();
  rocksdb_block_based_options_set_block_cache(blocks, cache);
  rocksdb_options_set_block_based_table_factory(options, blocks);
  rocksdb_env_t* env = rocksdb_create_default_env();
  rocksdb_sst_file_manager_t* files_of = rocksdb_sst_file_manager_create(env);
  rocksdb_options_set_sst_file_manager(options, files_of);
  rocksdb_sst_file_manager_set_max_allowed_space_usage(files_of, 1);
  db = rocksdb_open(options, argv[1], &err);
  told("open with a most of space");
  rocksdb_sst_file_manager_set_max_allowed_space_usage(files_of, 0);
  db = rocksdb_open(options, argv[1], &err);
  told("open");
  if (!db) return 1;
  put(NULL, "apple", "red");
  put(NULL, "pear", "green");
  printf("memtables: %d\n", rocksdb_write_buffer_manager_memory_usage(manager) > 0);
  rocksdb_write_buffer_manager_set_buffer_size(manager, 9 << 20);
  printf("buffers: %zu %d\n", rocksdb_write_buffer_manager_buffer_size(manager),
         rocksdb_write_buffer_manager_enabled(manager));
  values();
  lists();
  walks();
  families(argv[1]);
  upkeep();
  counts();
  transactions(argv[1]);
  files(argv[1], files_of);
  partly(argv[1]);
  rocksdb_close(db);
  refused(argv[1]);
  printf("heard: %d\n", heard > 2);
  rocksdb_write_buffer_manager_destroy(manager);
  rocksdb_sst_file_manager_destroy(files_of);
  rocksdb_env_destroy(env);
  rocksdb_cache_destroy(cache);
  rocksdb_block_based_options_destroy(blocks);
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_options_destroy(options);
  return 0;
}
