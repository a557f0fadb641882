ALTER TABLE old ADD COLUMN note text NOT NULL DEFAULT 'x';
ALTER TABLE old ADD COLUMN owner text REFERENCES users;
UPDATE old SET owner = 'a@b' WHERE id = 1;
