// Runs checks one after the other and counts them.
module.exports = async (checks) => {
  let failed = 0;
  for (const check of checks) {
    try {
      await check();
      console.log('ok', check.name);
    } catch (error) {
      failed += 1;
      console.log('FAILED', check.name, error);
    }
  }
  console.log(`${checks.length - failed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
};
