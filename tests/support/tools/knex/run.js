// All migrations of this folder up, a look at what they made, and all of them down again.
const path = require('path');
const knex = require(path.join(process.argv[3], 'node_modules', 'knex'))({
  client: 'pg', connection: process.argv[2],
  migrations: { directory: path.join(__dirname, 'migrations') },
});
(async () => {
  await knex.migrate.latest();
  const made = (await knex.migrate.list())[0].length;
  const columns = Object.keys(await knex('users').columnInfo()).sort();
  const rows = await knex('users').orderBy('id').select('email', 'age');
  await knex.migrate.rollback(undefined, true);
  const left = await knex.schema.hasTable('users');
  console.log(JSON.stringify({ made, columns, rows, left }));
  await knex.destroy();
})().catch(async (error) => { console.error(error.message); await knex.destroy(); process.exit(1); });
