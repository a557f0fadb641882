exports.up = async (knex) => { await knex.schema.renameTable('posts', 'articles'); await knex.schema.alterTable('articles', t => { t.string('title').notNullable().defaultTo('x').alter(); t.setNullable('kind'); }); await knex('articles').insert({user_id: 1, title: 'q'}); };
exports.down = async (knex) => { await knex.schema.renameTable('articles', 'posts'); };
