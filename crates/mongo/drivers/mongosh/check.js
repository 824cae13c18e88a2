// The shell as people use it: its start, with the questions that it asks of a server by itself, and what is typed into it.
const assert = require('node:assert');
const { spawnSync } = require('node:child_process');
const { mkdtempSync } = require('node:fs');
const { tmpdir } = require('node:os');
const { join } = require('node:path');

const home = mkdtempSync(join(tmpdir(), 'mongosh-'));
const shell = (args, input) => {
  const done = spawnSync('node_modules/.bin/mongosh', [process.env.MONGO_URI + 'shell', ...args], {
    encoding: 'utf8',
    input,
    env: { ...process.env, HOME: home, NO_COLOR: '1', MONGOSH_FORCE_DISABLE_TELEMETRY_FOR_TESTING: '1' },
  });
  return { status: done.status, text: done.stdout + done.stderr };
};
const ask = (script) => {
  const { status, text } = shell(['--quiet', '--json=relaxed', '--eval', script]);
  assert.equal(status, 0, text);
  return JSON.parse(text);
};

const checks = {
  'its start has no red line'() {
    const { status, text } = shell([], 'db.version()\nshow dbs\nshow collections\nexit\n');
    assert.equal(status, 0, text);
    assert.match(text, /Connecting to:/);
    assert.match(text, /Using MongoDB:\s+7\.0/);
    assert.doesNotMatch(text, /error|warning|not supported/i);
  },
  'what is typed'() {
    ask('db.c.insertMany([{_id: 1, a: 1}, {_id: 2, a: 2}, {_id: 3, a: 2}])');
    assert.deepEqual(ask('db.c.find({a: 2}).sort({_id: -1}).toArray()'), [{ _id: 3, a: 2 }, { _id: 2, a: 2 }]);
    assert.equal(ask('db.c.updateMany({}, {$inc: {a: 1}})').modifiedCount, 3);
    assert.equal(ask('db.c.countDocuments({a: 3})'), 2);
    assert.equal(ask('db.c.createIndex({a: 1})'), 'a_1');
    assert.equal(ask('db.c.getIndexes()').length, 2);
    assert.equal(ask('db.c.aggregate([{$group: {_id: "$a", n: {$sum: 1}}}]).toArray()').length, 2);
    assert.deepEqual(ask('db.getCollectionNames()'), ['c']);
  },
  'statistics'() {
    assert.equal(ask('db.c.stats().count'), 3);
    assert.equal(ask('db.stats().collections'), 1);
    assert.equal(ask('db.c.estimatedDocumentCount()'), 3);
    assert.ok(ask('db.serverStatus().connections.current') >= 1);
    assert.equal(ask('db.c.find({a: 3}).explain("executionStats").executionStats.totalKeysExamined'), 2);
    assert.equal(ask('db.hello().isWritablePrimary'), true);
    assert.equal(ask('db.hostInfo().ok'), 1);
  },
  'mistakes are told by the server\'s words'() {
    const { status, text } = shell(['--quiet', '--eval', 'db.c.find({$where: "1"}).toArray()']);
    assert.equal(status, 1);
    assert.match(text, /MongoServerError.*\$where/);
  },
};

let failed = 0;
for (const [name, check] of Object.entries(checks)) {
  try {
    check();
    console.log('ok', name);
  } catch (error) {
    failed += 1;
    console.log('FAILED', name, error);
  }
}
console.log(`${Object.keys(checks).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
