// ioredis as applications use it.
const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const { once } = require('node:events');
const Redis = require('ioredis');

const port = Number(process.env.REDIS_PORT);
const connect = (more) => new Redis({ port, ...more });
const redis = connect();

async function values() {
  assert.equal(await redis.set('k', 'v', 'EX', 100, 'NX'), 'OK');
  assert.equal(await redis.set('k', 'w', 'NX'), null);
  await redis.hset('h', { a: 1, b: 'two' });
  assert.deepEqual(await redis.hgetall('h'), { a: '1', b: 'two' });
  await redis.zadd('z', 1.5, 'a', 2, 'b');
  assert.deepEqual(await redis.zrange('z', 0, -1, 'WITHSCORES'), ['a', '1.5', 'b', '2']);
  await redis.set(Buffer.from([0, 255]), Buffer.from([1, 0, 255]));
  assert.deepEqual(await redis.getBuffer(Buffer.from([0, 255])), Buffer.from([1, 0, 255]));
}

async function pipelines() {
  const pipe = redis.pipeline();
  for (let i = 0; i < 10000; i++) pipe.set(`p${i}`, i);
  assert((await pipe.exec()).every(([error, value]) => !error && value === 'OK'));
  const auto = connect({ enableAutoPipelining: true });
  const got = await Promise.all(Array.from({ length: 5000 }, (_, i) => auto.get(`p${i}`)));
  assert(got.every((value, i) => value === String(i)));
  auto.disconnect();
}

async function transactions() {
  const mine = connect();
  await redis.set('stock', 5);
  await mine.watch('stock');
  const first = await mine.multi().decr('stock').get('stock').exec();
  assert.deepEqual(first, [[null, 4], [null, '4']]);
  await mine.watch('stock');
  await redis.set('stock', 9);
  assert.equal(await mine.multi().decr('stock').exec(), null);
  mine.disconnect();
}

async function scripts() {
  redis.defineCommand('addTo', { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1])" });
  await redis.del('n');
  assert.equal(await redis.addTo('n', 3), 3);
  await redis.script('FLUSH');
  assert.equal(await redis.addTo('n', 4), 7);
  const many = await redis.pipeline().addTo('n', 1).addTo('n', 1).exec();
  assert.deepEqual(many, [[null, 8], [null, 9]]);
}

async function channels() {
  const sub = connect();
  await sub.subscribe('news');
  await sub.psubscribe('new*');
  const seen = Promise.all([once(sub, 'message'), once(sub, 'pmessage')]);
  assert.equal(await redis.publish('news', 'hello'), 2);
  assert.deepEqual(await seen, [['news', 'hello'], ['new*', 'news', 'hello']]);
  sub.disconnect();
}

async function blockingPops() {
  const waits = connect();
  const popped = waits.blpop('q1', 'q2', 10);
  while (!/blocked_clients:1/.test(await redis.info('clients'))) await new Promise((go) => setTimeout(go, 5));
  await redis.rpush('q2', 'job');
  assert.deepEqual(await popped, ['q2', 'job']);
  assert.equal(await waits.blmove('q1', 'q2', 'LEFT', 'RIGHT', 0.05), null);
  waits.disconnect();
}

async function scans() {
  const seen = new Set();
  for await (const keys of redis.scanStream({ match: 'p*', count: 500 })) keys.forEach((key) => seen.add(key));
  assert.equal(seen.size, 10000);
  await redis.hset('big', Object.fromEntries(Array.from({ length: 3000 }, (_, i) => [`f${i}`, i])));
  const fields = new Map();
  for await (const part of redis.hscanStream('big')) for (let i = 0; i < part.length; i += 2) fields.set(part[i], part[i + 1]);
  assert.equal(fields.size, 3000);
}

async function streams() {
  for (let i = 0; i < 100; i++) await redis.xadd('s', '*', 'n', i);
  await redis.xgroup('CREATE', 's', 'g', '0');
  const waits = connect();
  let done = 0;
  for (;;) {
    const got = await waits.xreadgroup('GROUP', 'g', 'c', 'COUNT', 9, 'BLOCK', 20, 'STREAMS', 's', '>');
    if (!got) break;
    for (const [id] of got[0][1]) done += await redis.xack('s', 'g', id);
  }
  assert.equal(done, 100);
  assert.equal((await redis.xpending('s', 'g'))[0], 0);
  waits.disconnect();
}

async function reconnectsAfterAKill() {
  const sub = connect();
  await sub.subscribe('after');
  redis.on('error', () => {});
  sub.on('error', () => {});
  await redis.set('before', 'kill');
  execFileSync(process.env.RESTART_SERVER, { stdio: 'ignore' });
  assert.equal(await redis.get('before'), 'kill');
  const message = once(sub, 'message');
  const again = setInterval(() => redis.publish('after', 'again'), 50);
  assert.deepEqual(await message, ['after', 'again']);
  clearInterval(again);
}

require(process.env.CHECKS)([
  values, pipelines, transactions, scripts, channels, blockingPops, scans, streams, reconnectsAfterAKill,
]);
