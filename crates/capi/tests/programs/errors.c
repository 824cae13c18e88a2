/* Mistakes whose errors programs look at, one line each. By the same library version the same lines.
     errors DIR
   Of each error the part before the first colon, and whether it has the words that programs search for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static char* err;

static void tell(const char* what, const char* words) {
  if (!err) printf("%s: no error\n", what);
  else printf("%s: %.*s, \"%s\" %s\n", what, (int)strcspn(err, ":"), err, words, strstr(err, words) ? "said" : err);
  rocksdb_free(err);
  err = NULL;
}

static int compare(void* s, const char* a, size_t alen, const char* b, size_t blen) {
  (void)s, (void)a, (void)b;
  return alen < blen ? -1 : alen > blen;
}

static const char* name(void* s) {
  (void)s;
  return "another";
}

static void left(void* s) { (void)s; }

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  char dir[512], other[600];
  snprintf(dir, sizeof dir, "%s", argv[1]);
  snprintf(other, sizeof other, "%s-other", dir);
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_open(options, dir, &err);
  tell("missing", "CURRENT: does not exist (create_if_missing is false)");
  rocksdb_open_for_read_only(options, dir, 0, &err);
  tell("read what is missing", "");
  size_t count = 7;
  rocksdb_list_column_families(options, dir, &count, &err);
  tell("list what is missing", "");
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, dir, &err);
  tell("open", "");
  rocksdb_open(options, dir, &err);
  tell("twice", "lock hold by current process");
  rocksdb_options_set_error_if_exists(options, 1);
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  rocksdb_writeoptions_set_sync(writes, 1);
  rocksdb_writeoptions_disable_WAL(writes, 1);
  rocksdb_put(db, writes, "a", 1, "1", 1, &err);
  tell("sync without WAL", "Sync writes has to enable WAL.");
  rocksdb_writeoptions_set_sync(writes, 0);
  rocksdb_writeoptions_disable_WAL(writes, 0);
  rocksdb_put(db, writes, "a", 1, "1", 1, &err);
  tell("put", "");
  rocksdb_merge(db, writes, "a", 1, "1", 1, &err);
  tell("merge without an operator", "Provide a merge_operator when opening DB");
  rocksdb_column_family_handle_t* family = rocksdb_create_column_family(db, options, "f", &err);
  tell("create", "");
  rocksdb_create_column_family(db, options, "f", &err);
  tell("create again", "Column family already exists");
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_rollback_to_save_point(batch, &err);
  tell("no savepoint", "NotFound: ");
  rocksdb_writebatch_pop_save_point(batch, &err);
  tell("no savepoint to forget", "NotFound: ");
  const char* good[] = {"write_buffer_size", "disable_auto_compactions"};
  const char* values[] = {"128M", "true"};
  rocksdb_set_options(db, 2, good, values, &err);
  tell("set", "");
  rocksdb_set_options_cf(db, family, 2, good, values, &err);
  tell("set of a family", "");
  rocksdb_set_options(db, 0, good, values, &err);
  tell("set nothing", "empty input");
  static const char* mistakes[][3] = {
      {"nonesuch", "1", "Could not find option: : nonesuch"},
      {"max_background_jobs", "4", "Could not find option: : max_background_jobs"},
      {"num_levels", "3", "Option not changeable: num_levels"},
      {"compaction_style", "1", "Option not changeable: compaction_style"},
      {"block_based_table_factory.index_type", "kHashSearch", "Option not changeable: index_type"},
      {"write_buffer_size", "many", "Error parsing write_buffer_size:stoull"},
      {"max_write_buffer_number", "many", "Error parsing max_write_buffer_number:stoi"},
      {"max_bytes_for_level_multiplier", "many", "Error parsing max_bytes_for_level_multiplier:stod"},
      {"disable_auto_compactions", "yes", "Error parsing disable_auto_compactions:"},
      {"compression", "many", "Error parsing:: compression"},
      {"compaction_options_fifo", "{max_table_files_size=x}", "Error parsing max_table_files_size:stoull"},
      {"compaction_options_universal", "{nope=3}", "Unrecognized option: compaction_options_universal.nope"},
  };
  for (size_t at = 0; at < sizeof mistakes / sizeof *mistakes; at++) {
    const char* pair[] = {"ttl", mistakes[at][0]};
    const char* set[] = {"7", mistakes[at][1]};
    rocksdb_set_options(db, 2, pair, set, &err);
    tell(mistakes[at][0], mistakes[at][2]);
  }
  rocksdb_delete_file_in_range(db, NULL, 0, "b", 1, &err);
  tell("delete files", "");
  rocksdb_delete_file_in_range_cf(db, family, "a", 1, NULL, 0, &err);
  tell("delete files of a family", "");
  rocksdb_drop_column_family(db, family, &err);
  tell("drop", "");
  rocksdb_column_family_handle_destroy(family);
  rocksdb_writebatch_put(batch, "b", 1, "2", 1);
  rocksdb_write(db, writes, batch, &err);
  tell("write", "");
  rocksdb_writebatch_destroy(batch);
  size_t len;
  char* found = rocksdb_get(db, reads, "zz", 2, &len, &err);
  printf("absent: %d %zu\n", found != NULL, len);
  tell("absent", "");
  const char* files[] = {"/there/is/no.sst"};
  rocksdb_ingestexternalfileoptions_t* ingest = rocksdb_ingestexternalfileoptions_create();
  rocksdb_ingest_external_file(db, files, 1, ingest, &err);
  tell("ingest nothing", "");
  rocksdb_ingestexternalfileoptions_destroy(ingest);
  rocksdb_checkpoint_t* checkpoint = rocksdb_checkpoint_object_create(db, &err);
  rocksdb_checkpoint_create(checkpoint, dir, 0, &err);
  tell("checkpoint onto itself", "exists");
  rocksdb_checkpoint_create(checkpoint, other, 0, &err);
  tell("checkpoint", "");
  rocksdb_checkpoint_object_destroy(checkpoint);
  rocksdb_envoptions_t* env = rocksdb_envoptions_create();
  rocksdb_sstfilewriter_t* writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_put(writer, "a", 1, "b", 1, &err);
  tell("a table that is not open", "File is not opened");
  snprintf(dir, sizeof dir, "%s.sst", argv[1]);
  rocksdb_sstfilewriter_open(writer, dir, &err);
  tell("open a table", "");
  rocksdb_sstfilewriter_put(writer, "b", 1, "b", 1, &err);
  rocksdb_sstfilewriter_put(writer, "a", 1, "b", 1, &err);
  tell("keys out of order", "");
  rocksdb_sstfilewriter_destroy(writer);
  writer = rocksdb_sstfilewriter_create(env, options);
  rocksdb_sstfilewriter_open(writer, dir, &err);
  rocksdb_sstfilewriter_finish(writer, &err);
  tell("an empty table", "");
  rocksdb_sstfilewriter_destroy(writer);
  rocksdb_envoptions_destroy(env);
  rocksdb_options_t* made = rocksdb_options_create();
  rocksdb_get_options_from_string(options, "write_buffer_size=1000;nothing_of_this_name=1", made, &err);
  tell("options of no name", "Could not find option");
  rocksdb_get_options_from_string(options, "write_buffer_size=many", made, &err);
  tell("a size that is none", "Error parsing");
  rocksdb_get_options_from_string(options, "write_buffer_size=131072;max_open_files=77", made, &err);
  tell("options", "");
  printf("%zu %d\n", rocksdb_options_get_write_buffer_size(made), rocksdb_options_get_max_open_files(made));
  rocksdb_options_destroy(made);
  /* The last write: RocksDB takes no other after this. */
  batch = rocksdb_writebatch_create_from("short", 5);
  rocksdb_write(db, writes, batch, &err);
  tell("a batch that is none", "");
  rocksdb_writebatch_destroy(batch);
  rocksdb_close(db);
  rocksdb_open(options, argv[1], &err);
  tell("exists", "exists (error_if_exists is true)");
  rocksdb_options_set_error_if_exists(options, 0);
  rocksdb_comparator_t* order = rocksdb_comparator_create(NULL, left, compare, name);
  rocksdb_options_set_comparator(options, order);
  rocksdb_open(options, argv[1], &err);
  tell("another order", "Invalid argument: another: does not match existing comparator leveldb.BytewiseComparator");
  rocksdb_options_destroy(options);
  options = rocksdb_options_create();
  const char* names[] = {"default", "nowhere"};
  const rocksdb_options_t* both[] = {options, options};
  rocksdb_column_family_handle_t* handles[2];
  rocksdb_open_column_families(options, argv[1], 2, names, both, handles, &err);
  tell("a family that is not there", "Column family not found");
  db = rocksdb_open_for_read_only(options, argv[1], 0, &err);
  tell("read only", "");
  rocksdb_put(db, writes, "a", 1, "1", 1, &err);
  tell("write what is read only", "Not supported operation in read only mode.");
  rocksdb_close(db);
  rocksdb_destroy_db(options, argv[1], &err);
  tell("destroy", "");
  rocksdb_destroy_db(options, other, &err);
  tell("destroy the checkpoint", "");
  rocksdb_options_destroy(options);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_readoptions_destroy(reads);
  rocksdb_comparator_destroy(order);
  return 0;
}
