/* Misuse that RocksDB leaves undefined, one a run.
     mistakes DIR NUMBER
   Ends with 0 where the call is answered, and prints what it is; where handles are misused the process is ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

static _Noreturn void end(const char* answer) {
  puts(answer);
  exit(0);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  char* err = NULL;
  size_t len = 0;
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_t* db = rocksdb_open(options, argv[1], &err);
  if (err) return fprintf(stderr, "%s\n", err), 2;
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  rocksdb_writeoptions_t* writes = rocksdb_writeoptions_create();
  rocksdb_put(db, writes, "a", 1, "1", 1, &err);
  rocksdb_iterator_t* it = rocksdb_create_iterator(db, reads);
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  switch (atoi(argv[2])) {
    case 0: rocksdb_put(NULL, writes, "a", 1, "b", 1, &err); break;
    case 1: rocksdb_put(db, NULL, "a", 1, "b", 1, &err); break;
    case 2: rocksdb_put(db, writes, NULL, 1, "b", 1, &err); break;
    case 3: rocksdb_get(db, (rocksdb_readoptions_t*)writes, "a", 1, &len, &err); break;
    case 4: rocksdb_close(db); rocksdb_put(db, writes, "a", 1, "b", 1, &err); break;
    case 5: rocksdb_close(db); rocksdb_close(db); break;
    case 6: rocksdb_writebatch_destroy(batch); rocksdb_writebatch_put(batch, "a", 1, "b", 1); break;
    case 7: rocksdb_open(options, NULL, &err); break;
    case 8: rocksdb_comparator_create(NULL, NULL, NULL, NULL); break;
    case 9: rocksdb_writebatch_iterate(batch, NULL, NULL, NULL); break;
    /* From here on they are answered. */
    case 20: rocksdb_iter_next(it); rocksdb_iter_prev(it);
      end(rocksdb_iter_valid(it) ? "somewhere" : rocksdb_iter_key(it, &len) || len ? "a key" : "nowhere");
    case 21: rocksdb_iter_seek_to_first(it); rocksdb_close(db);
      end(rocksdb_iter_valid(it) && *rocksdb_iter_value(it, &len) == '1' ? "still readable" : "gone");
    case 22: {
      const rocksdb_snapshot_t* snapshot = rocksdb_create_snapshot(db);
      rocksdb_readoptions_set_snapshot(reads, snapshot);
      rocksdb_delete(db, writes, "a", 1, &err);
      rocksdb_release_snapshot(db, snapshot);
      char* found = rocksdb_get(db, reads, "a", 1, &len, &err);
      end(found && len == 1 ? "still readable" : "gone");
    }
    case 23: {
      rocksdb_pinnableslice_t* pinned = rocksdb_get_pinned(db, reads, "a", 1, &err);
      rocksdb_close(db);
      end(*rocksdb_pinnableslice_value(pinned, &len) == '1' && len == 1 ? "still readable" : "gone");
    }
    case 24: {
      size_t large = 9 << 20;
      char* key = calloc(1, large);
      rocksdb_writebatch_put(batch, key, large, "v", 1);
      rocksdb_writebatch_put(batch, "b", 1, "v", 1);
      rocksdb_write(db, writes, batch, &err);
      char* found = rocksdb_get(db, reads, "b", 1, &len, NULL);
      end(err && !found ? "refused whole" : "written");
    }
    case 25: rocksdb_put(db, writes, "a", 1, "b", 1, NULL); rocksdb_options_destroy(options);
      rocksdb_options_destroy(NULL); end("no place for errors");
    case 26: rocksdb_options_set_compression(options, 77); rocksdb_close(db); rocksdb_open(options, argv[1], &err); end(err);
    case 27: rocksdb_close(db); rocksdb_options_set_wal_recovery_mode(options, 3); rocksdb_open(options, argv[1], &err);
      end(err);
    case 28: rocksdb_close(db); rocksdb_options_set_cuckoo_table_factory(options, rocksdb_cuckoo_options_create());
      rocksdb_open(options, argv[1], &err); end(err ? err : "other tables");
    case 29: rocksdb_put_with_ts(db, writes, "a", 1, "12345678", 8, "v", 1, &err); end(err);
    case 30: rocksdb_readoptions_set_timestamp(reads, "12345678", 8); rocksdb_get(db, reads, "a", 1, &len, &err); end(err);
    case 31: rocksdb_readoptions_set_iter_start_ts(reads, "12345678", 8); rocksdb_get(db, reads, "a", 1, &len, &err);
      end(err);
    default: return 2;
  }
  puts(err ? err : "nothing happened");
  return 0;
}
