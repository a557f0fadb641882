// Models made, altered and used, and the query interface: run.js URL FOLDER
const path = require('path');
const { Sequelize, DataTypes } = require(path.join(process.argv[3], 'node_modules', 'sequelize'));
const sequelize = new Sequelize(process.argv[2], { logging: false });
(async () => {
  const ship = (more) => sequelize.define('ship', {
    name: { type: DataTypes.STRING(40), unique: true, allowNull: false },
    kind: { type: DataTypes.ENUM('small', 'large'), defaultValue: 'small' },
    price: DataTypes.DECIMAL(8, 2), body: DataTypes.JSONB, tags: DataTypes.ARRAY(DataTypes.STRING),
    ...more,
  }, { indexes: [{ fields: ['price'] }] });
  let Ship = ship({});
  const Person = sequelize.define('person', { word: DataTypes.TEXT });
  Ship.hasMany(Person, { onDelete: 'CASCADE' });
  Person.belongsTo(Ship);
  await sequelize.sync();
  Ship = ship({ speed: { type: DataTypes.INTEGER, defaultValue: 3 }, price: DataTypes.DECIMAL(10, 2) });
  await sequelize.sync({ alter: true });
  const asked = sequelize.getQueryInterface();
  await asked.addColumn('people', 'age', { type: DataTypes.INTEGER });
  await asked.renameColumn('people', 'age', 'years');
  await asked.addIndex('people', ['years', 'word']);
  await asked.addConstraint('people', { fields: ['word'], type: 'unique', name: 'one_word' });
  const columns = Object.keys(await asked.describeTable('people')).sort();
  const indexes = (await asked.showIndex('people')).map((each) => each.name).sort();
  const made = await Ship.create({ name: 'a', kind: 'large', price: '1.50', body: { a: 1 }, tags: ['x'] });
  await Person.bulkCreate([{ word: 'b', shipId: made.id }, { word: 'c', shipId: made.id }]);
  await sequelize.transaction(async (transaction) => {
    await Ship.increment('speed', { by: 2, where: { name: 'a' }, transaction });
  });
  const [, created] = await Ship.findOrCreate({ where: { name: 'a' } });
  const found = await Ship.findOne({ where: { name: 'a' } });
  await made.destroy();
  const left = await Person.count();
  console.log(JSON.stringify({ columns, indexes, speed: found.speed, created, left }));
  await sequelize.drop({});
  await sequelize.close();
})().catch((error) => { console.error(error); process.exit(1); });
