exports.up = async (knex) => {
  await knex.schema.createTable('users', t => { t.increments(); t.string('email').notNullable().unique(); t.string('name', 50).index(); t.boolean('active').defaultTo(true); t.timestamps(true, true); t.jsonb('meta'); t.decimal('bal', 10, 2).defaultTo(0); t.uuid('uid').defaultTo(knex.raw('gen_random_uuid()')); t.text('bio'); t.date('born'); t.double('ratio'); t.bigInteger('big'); t.binary('raw'); t.specificType('n', 'smallint'); });
  await knex('users').insert([{email: 'a@b', name: 'a'}, {email: 'c@d'}]);
};
exports.down = async (knex) => { await knex.schema.dropTable('users'); };
