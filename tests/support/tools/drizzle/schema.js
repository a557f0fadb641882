const path = require('path');
const pg = require(path.join(process.env.WALK_FOLDER, 'node_modules', 'drizzle-orm', 'pg-core'));
const kind = pg.pgEnum('kind', ['small', 'large']);
const ship = pg.pgTable('ship', {
  id: pg.serial('id').primaryKey(),
  name: pg.varchar('name', { length: 40 }).notNull().unique(),
  kind: kind('kind').default('small'),
  made: pg.timestamp('made', { withTimezone: true }).defaultNow(),
  body: pg.jsonb('body'),
  tags: pg.text('tags').array(),
}, (table) => [pg.index('ship_made').on(table.made.desc())]);
const person = pg.pgTable('person', {
  id: pg.uuid('id').defaultRandom().primaryKey(),
  ship: pg.integer('ship').references(() => ship.id, { onDelete: 'cascade' }),
  word: pg.text('word'),
});
module.exports = { kind, ship, person };
