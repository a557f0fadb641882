exports.up = async (knex) => {
  await knex.schema.createTable('posts', t => { t.bigIncrements('id'); t.integer('user_id').unsigned().notNullable().references('id').inTable('users').onDelete('CASCADE'); t.string('title'); t.enu('kind', ['a', 'b']).defaultTo('a'); t.comment('posts'); t.check('?? <> ?', ['title', '']); });
  await knex.schema.alterTable('users', t => { t.integer('age'); t.string('name', 100).alter(); t.renameColumn('bio', 'about'); t.dropColumn('big'); });
  await knex('users').update({age: 3});
  await knex.schema.alterTable('users', t => { t.integer('age').notNullable().alter(); t.dropIndex('name'); t.unique(['name', 'age'], {indexName: 'nm_age'}); });
};
exports.down = async (knex) => { await knex.schema.alterTable('users', t => { t.dropUnique(null, 'nm_age'); t.dropColumn('age'); t.renameColumn('about', 'bio'); t.index('name'); t.bigInteger('big'); }); await knex.schema.dropTable('posts'); };
