package main

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// table is one of PostgreSQL, and its transactions are of one snapshot each.
type table struct{ conn *pgx.Conn }

const (
	upsert = `INSERT INTO abc (key, value) VALUES ($1, $2)
		ON CONFLICT (key) DO UPDATE SET value = excluded.value`
	remove = `DELETE FROM abc WHERE key = $1`
	choose = `SELECT value FROM abc WHERE key = $1`
)

func openPostgres(addr string) (store, error) {
	conn, err := pgx.Connect(context.Background(),
		"postgres://postgres@"+addr+"/postgres?sslmode=disable")
	if err != nil {
		return nil, err
	}
	return table{conn}, nil
}

// transact sends all operations in one go, as the other protocol does.
func (s table) transact(operations []operation, commits bool) (outcome, error) {
	background := context.Background()
	tx, err := s.conn.BeginTx(background, pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
	if err != nil {
		return failed, err
	}
	batch := &pgx.Batch{}
	for _, own := range operations {
		if own.value != nil {
			batch.Queue(upsert, own.key, own.value)
		} else {
			batch.Queue(remove, own.key)
		}
	}
	err = tx.SendBatch(background, batch).Close()
	if err == nil && commits {
		err = tx.Commit(background)
	}
	if err == nil && commits {
		return committed, nil
	}
	if undone := tx.Rollback(background); undone != nil && !errors.Is(undone, pgx.ErrTxClosed) {
		return failed, undone
	}
	if err == nil {
		return aborted, nil
	}
	if conflicts(err) {
		return failed, nil
	}
	return failed, err
}

// conflicts: a serialization failure, or a deadlock, which is one too.
func conflicts(err error) bool {
	var told *pgconn.PgError
	return errors.As(err, &told) && (told.Code == "40001" || told.Code == "40P01")
}

func (s table) put(key, value []byte) error {
	_, err := s.conn.Exec(context.Background(), upsert, key, value)
	return err
}

// read asks for each by itself, in one go.
func (s table) read(keys [][]byte) ([][]byte, error) {
	background := context.Background()
	batch := &pgx.Batch{}
	for _, key := range keys {
		batch.Queue(choose, key)
	}
	results := s.conn.SendBatch(background, batch)
	found := make([][]byte, len(keys))
	for i := range keys {
		err := results.QueryRow().Scan(&found[i])
		if err != nil && !errors.Is(err, pgx.ErrNoRows) {
			results.Close()
			return nil, err
		}
	}
	return found, results.Close()
}

func (s table) close() { s.conn.Close(context.Background()) }
