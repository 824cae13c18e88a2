// node-redis as applications use it: RESP2, RESP3, a pool, and its cache that the server keeps right.
const assert = require('node:assert');
const { execFileSync } = require('node:child_process');
const { createClient, createClientPool, defineScript, WatchError } = require('redis');

const socket = { port: Number(process.env.REDIS_PORT), host: '127.0.0.1', reconnectStrategy: 50 };
const connect = async (more) => {
  const client = createClient({ socket, ...more });
  client.on('error', () => {});
  return client.connect();
};
const pause = (ms) => new Promise((go) => setTimeout(go, ms));
let redis;

async function values() {
  redis = await connect({
    RESP: 3,
    scripts: {
      addTo: defineScript({
        NUMBER_OF_KEYS: 1,
        SCRIPT: "return redis.call('INCRBY', KEYS[1], ARGV[1])",
        parseCommand: (parser, key, by) => {
          parser.pushKey(key);
          parser.push(String(by));
        },
        transformReply: (reply) => reply,
      }),
    },
  });
  assert.equal(await redis.set('k', 'v', { EX: 100 }), 'OK');
  assert.equal(await redis.get('k'), 'v');
  await redis.hSet('h', { a: 1, b: 'two' });
  assert.deepEqual({ ...(await redis.hGetAll('h')) }, { a: '1', b: 'two' });
  await redis.zAdd('z', [{ score: 1.5, value: 'a' }, { score: 2, value: 'b' }]);
  assert.deepEqual(await redis.zRangeWithScores('z', 0, -1), [{ value: 'a', score: 1.5 }, { value: 'b', score: 2 }]);
  assert.deepEqual([...(await redis.sMembers('none'))], []);
  const two = await connect({ RESP: 2 });
  assert.deepEqual({ ...(await two.hGetAll('h')) }, { a: '1', b: 'two' });
  two.destroy();
}

async function automaticPipelines() {
  await Promise.all(Array.from({ length: 10000 }, (_, i) => redis.set(`p${i}`, String(i))));
  const got = await Promise.all(Array.from({ length: 10000 }, (_, i) => redis.get(`p${i}`)));
  assert(got.every((value, i) => value === String(i)));
}

async function transactions() {
  const mine = await connect();
  await redis.set('stock', '5');
  await mine.watch('stock');
  assert.deepEqual(await mine.multi().decr('stock').get('stock').exec(), [4, '4']);
  await mine.watch('stock');
  await redis.set('stock', '9');
  await assert.rejects(mine.multi().decr('stock').exec(), WatchError);
  mine.destroy();
}

async function scripts() {
  await redis.del('n');
  assert.equal(await redis.addTo('n', 3), 3);
  await redis.scriptFlush();
  assert.equal(await redis.addTo('n', 4), 7);
}

async function channels() {
  const sub = await connect({ RESP: 3 });
  const seen = [];
  await sub.subscribe('news', (message, channel) => seen.push(channel + message));
  await sub.pSubscribe('new*', (message) => seen.push(message));
  await sub.sSubscribe('shard', (message) => seen.push(message));
  assert.equal(await redis.publish('news', 'hello'), 2);
  assert.equal(await redis.sPublish('shard', 'part'), 1);
  for (let i = 0; i < 200 && seen.length < 3; i++) await pause(10);
  assert.deepEqual(seen.sort(), ['hello', 'newshello', 'part']);
  sub.destroy();
}

async function pools() {
  const pool = await createClientPool({ socket }, { minimum: 2, maximum: 10 }).connect();
  await redis.del('hits');
  await Promise.all(Array.from({ length: 1000 }, () => pool.incr('hits')));
  const popped = pool.execute((client) => client.blPop(['q1', 'q2'], 10));
  while (!/blocked_clients:1/.test(await redis.info('clients'))) await pause(5);
  await redis.rPush('q2', 'job');
  assert.deepEqual({ ...(await popped) }, { key: 'q2', element: 'job' });
  assert.equal(await redis.get('hits'), '1000');
  pool.destroy();
}

async function clientSideCache() {
  const cached = await connect({ RESP: 3, clientSideCache: { ttl: 0, maxEntries: 100 } });
  await redis.set('cached', '1');
  assert.equal(await cached.get('cached'), '1');
  assert.equal(await cached.get('cached'), '1');
  await redis.set('cached', '2');
  for (let i = 0; i < 500 && (await cached.get('cached')) !== '2'; i++) await pause(10);
  assert.equal(await cached.get('cached'), '2');
  cached.destroy();
}

async function scans() {
  const seen = new Set();
  for await (const keys of redis.scanIterator({ MATCH: 'p*', COUNT: 500 })) for (const key of keys) seen.add(key);
  assert.equal(seen.size, 10000);
}

async function streams() {
  for (let i = 0; i < 100; i++) await redis.xAdd('s', '*', { n: String(i) });
  await redis.xGroupCreate('s', 'g', '0');
  let done = 0;
  for (;;) {
    const got = await redis.xReadGroup('g', 'c', { key: 's', id: '>' }, { COUNT: 9 });
    if (!got) break;
    const [entry] = Array.isArray(got) ? got : Object.entries(got).map(([name, messages]) => ({ name, messages }));
    for (const { id } of entry.messages) done += await redis.xAck('s', 'g', id);
  }
  assert.equal(done, 100);
  assert.equal((await redis.xPending('s', 'g')).pending, 0);
}

async function reconnectsAfterAKill() {
  const sub = await connect();
  let again = 0;
  await sub.subscribe('after', () => (again += 1));
  await redis.set('before', 'kill');
  execFileSync(process.env.RESTART_SERVER, { stdio: 'ignore' });
  // Commands that were underway fail; those that come while the connection is made wait.
  for (let i = 0; i < 100; i++) {
    try {
      assert.equal(await redis.get('before'), 'kill');
      break;
    } catch (error) {
      if (error instanceof assert.AssertionError || i === 99) throw error;
      await pause(50);
    }
  }
  for (let i = 0; i < 200 && again === 0; i++) {
    await redis.publish('after', 'x');
    await pause(50);
  }
  assert(again > 0);
}

require(process.env.CHECKS)([
  values, automaticPipelines, transactions, scripts, channels, pools, clientSideCache, scans, streams, reconnectsAfterAKill,
]);
