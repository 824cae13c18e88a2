/* Calls that LevelDB leaves undefined, one a run.
     mistakes DIR NUMBER
   Ends with 0 where the call is answered, prints what it is; where it is a misuse of handles the process is ended. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leveldb/c.h"

static _Noreturn void end(const char* answer) {
  puts(answer);
  exit(0);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  char* err = NULL;
  size_t len = 0;
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_t* db = leveldb_open(options, argv[1], &err);
  if (err) return fprintf(stderr, "%s\n", err), 2;
  leveldb_readoptions_t* reads = leveldb_readoptions_create();
  leveldb_writeoptions_t* writes = leveldb_writeoptions_create();
  leveldb_put(db, writes, "a", 1, "1", 1, &err);
  leveldb_iterator_t* it = leveldb_create_iterator(db, reads);
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  switch (atoi(argv[2])) {
    case 0: leveldb_put(NULL, writes, "a", 1, "b", 1, &err); break;
    case 1: leveldb_put(db, NULL, "a", 1, "b", 1, &err); break;
    case 2: leveldb_put(db, writes, NULL, 1, "b", 1, &err); break;
    case 3: leveldb_get(db, (leveldb_readoptions_t*)writes, "a", 1, &len, &err); break;
    case 4: leveldb_close(db); leveldb_put(db, writes, "a", 1, "b", 1, &err); break;
    case 5: leveldb_close(db); leveldb_close(db); break;
    case 6: leveldb_writebatch_destroy(batch); leveldb_writebatch_put(batch, "a", 1, "b", 1); break;
    case 7: leveldb_open(options, NULL, &err); break;
    case 8: leveldb_comparator_create(NULL, NULL, NULL, NULL); break;
    case 9: leveldb_writebatch_iterate(batch, NULL, NULL, NULL); break;
    /* From here on they are answered. */
    case 20: leveldb_iter_next(it); leveldb_iter_prev(it);
      end(leveldb_iter_valid(it) ? "somewhere" : leveldb_iter_key(it, &len) || len ? "a key" : "nowhere");
    case 21: leveldb_iter_seek_to_first(it); leveldb_close(db);
      end(leveldb_iter_valid(it) && *leveldb_iter_value(it, &len) == '1' ? "still readable" : "gone");
    case 22: {
      const leveldb_snapshot_t* snapshot = leveldb_create_snapshot(db);
      leveldb_readoptions_set_snapshot(reads, snapshot);
      leveldb_delete(db, writes, "a", 1, &err);
      leveldb_release_snapshot(db, snapshot);
      char* found = leveldb_get(db, reads, "a", 1, &len, &err);
      end(found && len == 1 ? "still readable" : "gone");
    }
    case 23: leveldb_put(db, writes, NULL, 0, NULL, 0, &err);
      end(err ? err : leveldb_get(db, reads, "", 0, &len, &err) ? "an empty key" : "nothing");
    case 24: {
      size_t large = 9 << 20;
      char* key = calloc(1, large);
      leveldb_writebatch_put(batch, key, large, "v", 1);
      leveldb_writebatch_put(batch, "b", 1, "v", 1);
      leveldb_write(db, writes, batch, &err);
      char* found = leveldb_get(db, reads, "b", 1, &len, NULL);
      end(err && !found ? "refused whole" : "written");
    }
    case 25: leveldb_put(db, writes, "a", 1, "b", 1, NULL); leveldb_options_destroy(options); end("no place for errors");
    case 26: leveldb_options_set_compression(options, 77); leveldb_close(db); db = leveldb_open(options, argv[1], &err);
      end(err);
    case 27: leveldb_destroy_db(options, argv[1], &err); end(err ? err : "removed");
    default: return 2;
  }
  puts(err ? err : "nothing happened");
  return 0;
}
