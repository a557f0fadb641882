const path = require('path');
const drizzle = path.join(process.env.WALK_FOLDER, 'node_modules', 'drizzle-orm');
const pg = require(path.join(drizzle, 'pg-core'));
const { sql } = require(drizzle);
const kind = pg.pgEnum('kind', ['small', 'large']);
const ship = pg.pgTable('ship', {
  id: pg.serial('id').primaryKey(),
  name: pg.varchar('name', { length: 40 }).notNull().unique(),
  kind: kind('kind').default('small'),
  made: pg.timestamp('made', { withTimezone: true }).defaultNow(),
  body: pg.jsonb('body'),
  tags: pg.text('tags').array(),
}, (table) => [
  pg.index('ship_made').on(table.made.desc()),
  pg.index('ship_like').on(table.name.asc().op('varchar_pattern_ops'), table.made),
]);
const person = pg.pgTable('person', {
  id: pg.uuid('id').defaultRandom().primaryKey(),
  ship: pg.integer('ship').references(() => ship.id, { onDelete: 'cascade' }),
  word: pg.text('word'),
}, (table) => [
  pg.uniqueIndex('person_word').on(table.word).where(sql`ship > 0`),
  pg.index('person_lower').on(sql`lower(word)`),
]);
module.exports = { kind, ship, person };
