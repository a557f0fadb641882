-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX CONCURRENTLY IF NOT EXISTS posts_title ON posts (title);
-- +goose Down
DROP INDEX CONCURRENTLY IF EXISTS posts_title;
