<?php
// MongoDB's driver for PHP (the extension, without its library of PHP code) as applications use it.
use MongoDB\BSON;
use MongoDB\Driver\{BulkWrite, Command, Manager, Query, WriteConcern};
use MongoDB\Driver\Exception\{BulkWriteException, CommandException};

$manager = new Manager(getenv('MONGO_URI'));

function same($got, $wanted)
{
    if ($got != $wanted) {
        throw new Exception(json_encode($got) . ', not ' . json_encode($wanted));
    }
}

function find($collection, $filter = [], $options = [])
{
    global $manager;
    return $manager->executeQuery("php.$collection", new Query($filter, $options))->toArray();
}

function command($command)
{
    global $manager;
    return $manager->executeCommand('php', new Command($command))->toArray();
}

function write($collection, callable $fill, $options = [])
{
    global $manager;
    $bulk = new BulkWrite($options);
    $fill($bulk);
    return $manager->executeBulkWrite("php.$collection", $bulk);
}

function refused(callable $body)
{
    try {
        $body();
    } catch (MongoDB\Driver\Exception\Exception $error) {
        return $error;
    }
    throw new Exception('it was not refused');
}

$checks = [
    'writes' => function () {
        $done = write('single', function ($bulk) {
            $bulk->insert(['_id' => 1, 'a' => 1, 'b' => ['c' => ['x']]]);
            $bulk->update(['a' => 1], ['$inc' => ['a' => 1], '$push' => ['b.c' => 'y']]);
            $bulk->update(['_id' => 'new'], ['$set' => ['a' => 5]], ['upsert' => true]);
            $bulk->update(['_id' => 'new'], ['z' => 1]);
        });
        same(
            [$done->getInsertedCount(), $done->getMatchedCount(), $done->getModifiedCount(), $done->getUpsertedCount()],
            [1, 2, 2, 1]
        );
        same(find('single', ['b.c' => 'y'], ['projection' => ['_id' => 0, 'a' => 1]]), [(object) ['a' => 2]]);
        $done = write('single', fn ($bulk) => $bulk->delete([]));
        same($done->getDeletedCount(), 2);
    },
    'cursors' => function () {
        global $manager;
        write('many', function ($bulk) {
            for ($n = 0; $n < 10000; $n++) {
                $bulk->insert(['_id' => $n, 'n' => $n, 'text' => str_repeat('x', $n % 100)]);
            }
        });
        $sum = 0;
        $found = $manager->executeQuery('php.many', new Query(['n' => ['$gte' => 5000]], ['batchSize' => 333]));
        foreach ($found as $each) {
            $sum += $each->n;
        }
        same($sum, (5000 + 9999) * 5000 / 2);
        same(find('many', [], ['sort' => ['n' => -1], 'skip' => 10, 'limit' => 1])[0]->n, 9989);
        same(command(['count' => 'many'])[0]->n, 10000);
        same(command(['distinct' => 'many', 'key' => 'n', 'query' => ['n' => ['$lt' => 3]]])[0]->values, [0, 1, 2]);
    },
    'duplicates' => function () {
        $error = refused(fn () => write('dups', function ($bulk) {
            foreach ([1, 1, 2] as $id) {
                $bulk->insert(['_id' => $id]);
            }
        }, ['ordered' => false]));
        same($error instanceof BulkWriteException, true);
        same($error->getWriteResult()->getWriteErrors()[0]->getCode(), 11000);
        same($error->getWriteResult()->getInsertedCount(), 2);
    },
    'indexes' => function () {
        command(['createIndexes' => 'indexed', 'indexes' => [['key' => ['mail' => 1], 'name' => 'mail_1', 'unique' => true]]]);
        write('indexed', fn ($bulk) => $bulk->insert(['mail' => 'a']));
        same(refused(fn () => write('indexed', fn ($bulk) => $bulk->insert(['mail' => 'a'])))->getCode(), 11000);
        same(count(command(['listIndexes' => 'indexed'])), 2);
        command(['dropIndexes' => 'indexed', 'index' => 'mail_1']);
        write('indexed', fn ($bulk) => $bulk->insert(['mail' => 'a']));
    },
    'pipelines' => function () {
        write('sales', function ($bulk) {
            foreach ([['a', 1], ['b', 2], ['a', 3], ['c', 4]] as [$k, $n]) {
                $bulk->insert(['k' => $k, 'n' => $n]);
            }
        });
        $groups = command(['aggregate' => 'sales', 'cursor' => new stdClass(), 'pipeline' => [
            ['$match' => ['n' => ['$lt' => 4]]],
            ['$group' => ['_id' => '$k', 'total' => ['$sum' => '$n']]],
            ['$sort' => ['_id' => 1]],
        ]]);
        same($groups, [(object) ['_id' => 'a', 'total' => 4], (object) ['_id' => 'b', 'total' => 2]]);
    },
    'find and modify' => function () {
        foreach ([1, 2] as $n) {
            $found = command(['findAndModify' => 'counters', 'query' => ['_id' => 'seq'], 'update' => ['$inc' => ['n' => 1]],
                'upsert' => true, 'new' => true]);
            same($found[0]->value->n, $n);
        }
    },
    'types' => function () {
        $all = ['_id' => new BSON\ObjectId(), 'string' => "h\0lich", 'double' => 1.5, 'int' => 7, 'long' => 9007199254740993,
            'decimal' => new BSON\Decimal128('1.2345678901234567890123456789'), 'date' => new BSON\UTCDateTime(1700000000123),
            'binary' => new BSON\Binary("\1\2\3", 128), 'regex' => new BSON\Regex('^a', 'i'), 'stamp' => new BSON\Timestamp(6, 5),
            'min' => new BSON\MinKey(), 'max' => new BSON\MaxKey(), 'none' => null, 'yes' => true,
            'deep' => [[], new stdClass(), [1, null]]];
        write('types', fn ($bulk) => $bulk->insert($all));
        same(find('types')[0], (object) $all);
    },
    'compressed' => function () {
        $other = new Manager(getenv('MONGO_URI'), ['compressors' => 'zlib']);
        $bulk = new BulkWrite();
        for ($n = 0; $n < 1000; $n++) {
            $bulk->insert(['n' => $n, 'text' => str_repeat('again and again ', 20)]);
        }
        $other->executeBulkWrite('php.compressed', $bulk);
        same(count($other->executeQuery('php.compressed', new Query([]))->toArray()), 1000);
    },
    'sessions' => function () {
        global $manager;
        $session = $manager->startSession();
        $bulk = new BulkWrite();
        $bulk->insert(['a' => 1]);
        $majority = new WriteConcern(WriteConcern::MAJORITY, 1000, true);
        $manager->executeBulkWrite('php.sessions', $bulk, ['session' => $session, 'writeConcern' => $majority]);
        $found = $manager->executeQuery('php.sessions', new Query([]), ['session' => $session])->toArray();
        same(count($found), 1);
        $session->endSession();
    },
    'refusals' => function () {
        write('refused', fn ($bulk) => $bulk->insert(['a' => 1]));
        same(str_contains(refused(fn () => find('refused', ['$where' => 'this.a']))->getMessage(), '$where'), true);
        $error = refused(fn () => command(['nonsense' => 1]));
        same([$error instanceof CommandException, $error->getCode()], [true, 59]);
        same(count(find('refused')), 1);
    },
    'a killed server' => function () {
        $acknowledged = [];
        for ($n = 0; $n < 400; $n++) {
            if ($n == 200) {
                system(getenv('RESTART_SERVER'), $status);
                same($status, 0);
            }
            try {
                write('killed', fn ($bulk) => $bulk->insert(['_id' => $n]));
                $acknowledged[] = $n;
            } catch (MongoDB\Driver\Exception\Exception $error) {
                // The server is away: its answer did not come.
            }
        }
        same(count($acknowledged) >= 300, true);
        same(array_diff($acknowledged, array_map(fn ($each) => $each->_id, find('killed'))), []);
    },
];

$failed = 0;
foreach ($checks as $name => $check) {
    try {
        $check();
        echo "ok $name\n";
    } catch (Throwable $error) {
        $failed++;
        echo "FAILED $name {$error->getMessage()}\n";
    }
}
echo count($checks) - $failed, " passed, $failed failed\n";
exit($failed ? 1 : 0);
