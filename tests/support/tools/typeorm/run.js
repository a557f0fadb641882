// Entities synchronised twice, a migration by their difference, and rows: run.js URL FOLDER
const path = require('path');
const { DataSource, EntitySchema } = require(path.join(process.argv[3], 'node_modules', 'typeorm'));
const columns = {
  id: { type: 'int', primary: true, generated: true },
  name: { type: 'varchar', length: 40, unique: true },
  price: { type: 'numeric', precision: 8, scale: 2, nullable: true },
  tags: { type: 'text', array: true, default: '{}' },
  kind: { type: 'enum', enum: ['small', 'large'], default: 'small' },
  made: { type: 'timestamptz', createDate: true },
  body: { type: 'jsonb', nullable: true },
};
const ship = (more) => new EntitySchema({
  name: 'Ship', columns: { ...columns, ...more },
  indices: [{ columns: ['price', 'made'] }], checks: [{ expression: '"price" > 0' }],
  relations: { crew: { type: 'one-to-many', target: 'Person', inverseSide: 'ship' } },
});
const person = new EntitySchema({
  name: 'Person', columns: {
    id: { type: 'uuid', primary: true, generated: 'uuid' }, word: { type: 'text' },
  },
  relations: { ship: { type: 'many-to-one', target: 'Ship', inverseSide: 'crew', onDelete: 'CASCADE' } },
});
const open = (more) => new DataSource({
  type: 'postgres', url: process.argv[2], entities: [ship(more), person], migrationsRun: false,
}).initialize();
const left = async (source) => (await source.driver.createSchemaBuilder().log()).upQueries.length;
(async () => {
  let source = await open({});
  await source.synchronize();
  const first = await left(source);
  await source.destroy();
  source = await open({ speed: { type: 'int', default: 3 }, note: { type: 'varchar', nullable: true } });
  const asked = await left(source);
  await source.synchronize();
  const second = await left(source);
  const ships = source.getRepository('Ship');
  await ships.save({ name: 'a', price: '1.50', tags: ['x', 'y'], kind: 'large', body: { a: 1 },
    crew: [] });
  await source.transaction(async (manager) => {
    const found = await manager.findOneByOrFail('Ship', { name: 'a' });
    await manager.save('Person', { word: 'b', ship: found });
  });
  await ships.upsert({ name: 'a', price: '2.00' }, ['name']);
  const rows = await ships.find({ relations: { crew: true } });
  await ships.delete({ name: 'a' });
  const people = await source.getRepository('Person').count();
  console.log(JSON.stringify({ first, asked: asked > 0, second, price: rows[0].price,
    tags: rows[0].tags, kind: rows[0].kind, crew: rows[0].crew.length, people }));
  await source.dropDatabase();
  await source.destroy();
})().catch((error) => { console.error(error); process.exit(1); });
