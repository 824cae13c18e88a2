// MongoDB's driver for Node as applications use it.
const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const {
  MongoClient, GridFSBucket, ObjectId, Decimal128, Binary, Long, Timestamp, MinKey, MaxKey, BSONRegExp, UUID,
} = require('mongodb');

const client = new MongoClient(process.env.MONGO_URI);
const db = client.db('node');

async function singleWrites() {
  const c = db.collection('single');
  const { insertedId } = await c.insertOne({ a: 1, b: { c: ['x'] } });
  assert.ok(insertedId instanceof ObjectId);
  assert.deepEqual(await c.findOne({ _id: insertedId }), { _id: insertedId, a: 1, b: { c: ['x'] } });
  const updated = await c.updateOne({ a: 1 }, { $inc: { a: 1 }, $push: { 'b.c': 'y' } });
  assert.deepEqual([updated.matchedCount, updated.modifiedCount], [1, 1]);
  const upserted = await c.updateOne({ _id: 'new' }, { $set: { a: 5 } }, { upsert: true });
  assert.deepEqual([upserted.upsertedCount, upserted.upsertedId], [1, 'new']);
  assert.equal((await c.replaceOne({ _id: 'new' }, { z: 1 })).modifiedCount, 1);
  assert.deepEqual(await c.findOne({ 'b.c': 'y' }, { projection: { _id: 0, a: 1 } }), { a: 2 });
  assert.equal((await c.deleteMany({})).deletedCount, 2);
  assert.equal(await c.countDocuments(), 0);
}

async function cursors() {
  const c = db.collection('many');
  const documents = Array.from({ length: 10000 }, (_, n) => ({ _id: n, n, text: 'x'.repeat(n % 100) }));
  assert.equal((await c.insertMany(documents)).insertedCount, 10000);
  let sum = 0;
  for await (const found of c.find({ n: { $gte: 5000 } }).batchSize(333)) sum += found.n;
  assert.equal(sum, ((5000 + 9999) * 5000) / 2);
  assert.deepEqual(await c.find().sort({ n: -1 }).skip(10).limit(2).map((x) => x.n).toArray(), [9989, 9988]);
  const cursor = c.find().batchSize(2);
  await cursor.next();
  await cursor.close();
  assert.deepEqual((await c.distinct('n', { n: { $lt: 3 } })).sort(), [0, 1, 2]);
  assert.equal(await c.estimatedDocumentCount(), 10000);
}

async function bulks() {
  const c = db.collection('bulk');
  const done = await c.bulkWrite([
    { insertOne: { document: { _id: 1 } } },
    { insertOne: { document: { _id: 2 } } },
    { updateMany: { filter: {}, update: { $set: { x: 1 } } } },
    { replaceOne: { filter: { _id: 3 }, replacement: { y: 1 }, upsert: true } },
    { deleteOne: { filter: { _id: 1 } } },
  ]);
  assert.deepEqual([done.insertedCount, done.modifiedCount, done.upsertedCount, done.deletedCount], [2, 2, 1, 1]);
}

async function duplicates() {
  const c = db.collection('dups');
  await c.insertOne({ _id: 1 });
  await assert.rejects(c.insertOne({ _id: 1 }), { code: 11000 });
  await assert.rejects(c.insertMany([{ _id: 2 }, { _id: 1 }, { _id: 3 }], { ordered: false }), (error) => {
    assert.equal(error.code, 11000);
    assert.equal(error.result.insertedCount, 2);
    return true;
  });
  assert.equal(await c.countDocuments(), 3);
}

async function indexes() {
  const c = db.collection('indexed');
  await c.insertMany(Array.from({ length: 100 }, (_, n) => ({ mail: `m${n}`, a: n % 10, b: n })));
  assert.equal(await c.createIndex({ mail: 1 }, { unique: true }), 'mail_1');
  await c.createIndex({ a: 1, b: -1 });
  assert.deepEqual((await c.indexes()).map((x) => x.name).sort(), ['_id_', 'a_1_b_-1', 'mail_1']);
  await assert.rejects(c.insertOne({ mail: 'm5' }), { code: 11000, keyValue: { mail: 'm5' } });
  const plan = await c.find({ a: 3 }).sort({ b: -1 }).explain('executionStats');
  assert.equal(plan.executionStats.totalDocsExamined, 10);
  assert.deepEqual(await c.find({ a: 3 }).sort({ b: -1 }).limit(2).map((x) => x.b).toArray(), [93, 83]);
  await c.dropIndex('mail_1');
  await c.insertOne({ mail: 'm5' });
}

async function pipelines() {
  const c = db.collection('sales');
  await c.insertMany([['a', 1], ['b', 2], ['a', 3], ['c', 4]].map(([k, n]) => ({ k, n })));
  const groups = await c.aggregate([
    { $match: { n: { $lt: 4 } } },
    { $group: { _id: '$k', total: { $sum: '$n' }, all: { $push: '$n' } } },
    { $sort: { _id: 1 } },
  ]).toArray();
  assert.deepEqual(groups, [{ _id: 'a', total: 4, all: [1, 3] }, { _id: 'b', total: 2, all: [2] }]);
}

async function findAndModify() {
  const c = db.collection('counters');
  const next = () =>
    c.findOneAndUpdate({ _id: 'seq' }, { $inc: { n: 1 } }, { upsert: true, returnDocument: 'after' });
  assert.equal((await next()).n, 1);
  assert.equal((await next()).n, 2);
  assert.equal((await c.findOneAndDelete({ _id: 'seq' })).n, 2);
  assert.equal(await c.findOneAndReplace({ _id: 'none' }, { a: 1 }), null);
}

async function types() {
  const c = db.collection('types');
  const all = {
    _id: new ObjectId(),
    string: 'häß\u0000lich',
    double: 1.5,
    int: 7,
    long: Long.fromString('9007199254740993'),
    decimal: Decimal128.fromString('1.2345678901234567890123456789'),
    date: new Date(1700000000123),
    binary: new Binary(Buffer.from([1, 2, 3]), 0),
    uuid: new UUID('00112233-4455-6677-8899-aabbccddeeff'),
    regex: new BSONRegExp('^a', 'i'),
    stamp: new Timestamp({ t: 5, i: 6 }),
    min: new MinKey(),
    max: new MaxKey(),
    none: null,
    yes: true,
    deep: { list: [[], {}, [1, { a: [] }]] },
  };
  await c.insertOne(all);
  const back = await c.findOne({ _id: all._id }, { promoteLongs: false, bsonRegExp: true });
  for (const [key, value] of Object.entries(all)) {
    if (key === 'int') assert.equal(Number(back.int), 7);
    else if (key === 'deep') assert.equal(JSON.stringify(back.deep).replace(/"/g, ''), '{list:[[],{},[1,{a:[]}]]}');
    else assert.deepEqual(back[key], value, key);
  }
  assert.equal(await c.countDocuments({ decimal: { $type: 'decimal' }, date: { $lt: new Date() } }), 1);
}

async function workers() {
  const c = db.collection('counter');
  await c.insertOne({ _id: 1, n: 0 });
  await Promise.all(Array.from({ length: 8 }, async () => {
    for (let i = 0; i < 200; i += 1) await c.updateOne({ _id: 1 }, { $inc: { n: 1 } });
  }));
  assert.equal((await c.findOne({ _id: 1 })).n, 1600);
}

async function compressed() {
  const other = new MongoClient(process.env.MONGO_URI, { compressors: ['zlib'] });
  const c = other.db('node').collection('compressed');
  await c.insertMany(Array.from({ length: 1000 }, (_, n) => ({ n, text: 'again and again '.repeat(20) })));
  assert.equal((await c.find().toArray()).length, 1000);
  await other.close();
}

async function sessions() {
  const c = db.collection('sessions');
  await client.withSession({ causalConsistency: true }, async (session) => {
    await c.insertOne({ a: 1 }, { session, writeConcern: { w: 'majority', j: true } });
    assert.equal(await c.countDocuments({}, { session }), 1);
  });
}

async function gridfs() {
  const bucket = new GridFSBucket(db);
  const data = Buffer.alloc(700000, 'drumlin ');
  const up = bucket.openUploadStream('a.bin');
  up.end(data);
  await new Promise((done, fail) => up.on('finish', done).on('error', fail));
  const parts = [];
  for await (const part of bucket.openDownloadStream(up.id)) parts.push(part);
  assert.ok(Buffer.concat(parts).equals(data));
  assert.deepEqual((await bucket.find().toArray()).map((x) => x.length), [700000]);
  await bucket.delete(up.id);
}

async function refusals() {
  const c = db.collection('refused');
  await c.insertOne({ a: 1 });
  await assert.rejects(c.find({ $where: 'this.a' }).toArray(), /\$where/);
  await assert.rejects(c.aggregate([{ $geoNear: {} }]).toArray(), /\$geoNear/);
  await assert.rejects(c.watch().next(), /changeStream/i);
  await client.withSession(async (session) => {
    session.startTransaction();
    await assert.rejects(c.insertOne({ a: 2 }, { session }), { code: 20 });
    await session.abortTransaction().catch(() => {});
  });
  await assert.rejects(db.command({ nonsense: 1 }), { code: 59 });
  assert.equal(await c.countDocuments(), 1);
}

async function catalog() {
  await db.createCollection('made');
  assert.ok((await db.listCollections({}, { nameOnly: true }).toArray()).some((x) => x.name === 'made'));
  assert.equal(await db.collection('made').drop(), true);
  assert.ok((await client.db().admin().listDatabases()).databases.some((x) => x.name === 'node'));
}

async function aKilledServer() {
  const c = db.collection('killed');
  const acknowledged = [];
  let stop = false;
  const writer = (async () => {
    for (let n = 0; !stop; n += 1) {
      await c.insertOne({ _id: n }).then(() => acknowledged.push(n), () => {});
    }
  })();
  await new Promise((go) => setTimeout(go, 300));
  execFileSync(process.env.RESTART_SERVER);
  await new Promise((go) => setTimeout(go, 300));
  stop = true;
  await writer;
  const found = new Set(await c.find().map((x) => x._id).toArray());
  assert.ok(acknowledged.length > 10);
  assert.deepEqual(acknowledged.filter((n) => !found.has(n)), []);
}

(async () => {
  let failed = 0;
  const checks = [
    singleWrites, cursors, bulks, duplicates, indexes, pipelines, findAndModify, types, workers, compressed, sessions, gridfs,
    refusals, catalog, aKilledServer,
  ];
  for (const check of checks) {
    try {
      await check();
      console.log('ok', check.name);
    } catch (error) {
      failed += 1;
      console.log('FAILED', check.name, error);
    }
  }
  await client.close();
  console.log(`${checks.length - failed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
})();
