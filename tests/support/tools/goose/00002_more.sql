-- +goose Up
-- +goose StatementBegin
INSERT INTO users (name) VALUES ('a'), ('b');
-- +goose StatementEnd
ALTER TABLE users ADD COLUMN age int;
UPDATE users SET age = 3;
ALTER TABLE users ALTER COLUMN age SET NOT NULL;
CREATE TABLE posts (id serial PRIMARY KEY, user_id bigint NOT NULL REFERENCES users ON DELETE CASCADE, title varchar(50));
INSERT INTO posts (user_id, title) SELECT id, name FROM users;
-- +goose Down
DROP TABLE posts;
ALTER TABLE users DROP COLUMN age;
DELETE FROM users;
