package offline

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/batches"
	"github.com/ingotml/ingot/server/wire"
)

// Most elements of a page, those of OpenAI's API.
const (
	mostFiles   = 10_000
	mostBatches = 100
)

// listFiles is GET /v1/files.
func (s *api) listFiles(w http.ResponseWriter, r *http.Request) error {
	list, err := s.store.files(server.Owner(r.Context()))
	if err != nil {
		return err
	}
	if purpose := r.URL.Query().Get("purpose"); purpose != "" {
		list = slices.DeleteFunc(list, func(x fileJSON) bool { return x.Purpose != purpose })
	}
	p, err := page(r, list, mostFiles, func(x fileJSON) string { return x.ID })
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, fileListJSON(p))
}

// file returns the file that a request names.
func (s *api) file(r *http.Request) (fileJSON, error) {
	x, err := s.store.file(server.Owner(r.Context()), r.PathValue("id"))
	if errors.Is(err, errUnknown) {
		err = wire.Errorf(http.StatusNotFound, "no file %s", wire.Clip(r.PathValue("id")))
	}
	return x, err
}

// getFile is GET /v1/files/{id}.
func (s *api) getFile(w http.ResponseWriter, r *http.Request) error {
	x, err := s.file(r)
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, x)
}

// getContent is GET /v1/files/{id}/content.
func (s *api) getContent(w http.ResponseWriter, r *http.Request) error {
	x, err := s.file(r)
	if err != nil {
		return err
	}
	content, err := s.store.open(server.Owner(r.Context()), x.ID)
	if err != nil {
		return err
	}
	defer content.Close()
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.FormatInt(x.Bytes, 10))
	_, err = io.Copy(w, content) // each write has a deadline of its own
	return err
}

// deleteFile is DELETE /v1/files/{id}.
func (s *api) deleteFile(w http.ResponseWriter, r *http.Request) error {
	owner := server.Owner(r.Context())
	x, err := s.file(r)
	if err != nil {
		return err
	}
	list, err := s.store.batches(owner)
	if err != nil {
		return err
	}
	for _, b := range list {
		if b.Input == x.ID && !b.finished() {
			return wire.BadRequest("%s has the requests of %s, which is not finished: cancel that first", x.ID, b.ID)
		}
	}
	if err := s.store.removeFile(owner, x.ID); err != nil {
		return err
	}
	return wire.WriteJSON(w, deletedJSON{x.ID, "file", true})
}

func (q *batchRequest) check() error {
	switch {
	case q.Input == "":
		return wire.BadParam("input_file_id", "missing")
	case !slices.Contains(batches.Endpoints, q.Endpoint):
		return wire.BadParam("endpoint", "%s is not one of %s", quoted(q.Endpoint), strings.Join(batches.Endpoints, ", "))
	case q.Window != "24h":
		return wire.BadParam("completion_window", "%s is not 24h", quoted(q.Window))
	case len(q.Metadata) > limits.BatchMetadata:
		return wire.BadParam("metadata", "it has %d keys, at most %d are allowed", len(q.Metadata), limits.BatchMetadata)
	}
	for key, value := range q.Metadata {
		if utf8.RuneCountInString(key) > 64 || utf8.RuneCountInString(value) > 512 {
			return wire.BadParam("metadata", "keys have at most 64 characters, values 512")
		}
	}
	if q.Expires != nil {
		return q.Expires.check("output_expires_after")
	}
	return nil
}

// window is how long a batch may take, in seconds. The client must ask for it.
const window = 24 * 3600

// createBatch is POST /v1/batches.
func (s *api) createBatch(w http.ResponseWriter, r *http.Request) error {
	var q batchRequest
	if err := wire.ReadJSON(r, &q); err != nil {
		return err
	}
	if err := q.check(); err != nil {
		return err
	}
	owner := server.Owner(r.Context())
	x, err := s.store.file(owner, q.Input)
	if errors.Is(err, errUnknown) {
		return wire.BadParam("input_file_id", "no file %s", wire.Clip(q.Input))
	}
	if err != nil {
		return err
	}
	if x.Purpose != purposeInput {
		return wire.BadParam("input_file_id", "%s has results, not requests", x.ID)
	}
	if err := s.roomForBatch(owner); err != nil {
		return err
	}
	now := s.store.now().Unix()
	b := record{Owner: owner, OutputLife: mostLife, batchJSON: batchJSON{ID: s.store.newID("batch_"), Object: "batch",
		Endpoint: q.Endpoint, Input: x.ID, Window: q.Window, Status: validating, CreatedAt: now,
		ExpiresAt: new(now + window), Metadata: q.Metadata}}
	if q.Expires != nil {
		b.OutputLife = q.Expires.Seconds
	}
	if err := s.store.write(owner, b.ID, &b); err != nil {
		return err
	}
	s.worker.wake()
	return wire.WriteJSON(w, b.batchJSON)
}

// roomForBatch makes room for a batch: it forgets the oldest finished ones. Their files stay.
func (s *api) roomForBatch(owner string) error {
	list, err := s.store.batches(owner)
	if err != nil {
		return err
	}
	waiting := 0
	for _, b := range list {
		if !b.finished() {
			waiting++
		}
	}
	if waiting >= s.most.unfinished {
		return wire.Errorf(http.StatusServiceUnavailable, "%d batches of the key are not finished, which is the limit",
			waiting)
	}
	for _, b := range list {
		if len(list) < s.most.batches {
			break
		}
		if b.finished() {
			if err := s.store.remove(owner, b.ID, dataExtension); err != nil {
				return err
			}
			list = list[1:]
		}
	}
	return nil
}

// listBatches is GET /v1/batches.
func (s *api) listBatches(w http.ResponseWriter, r *http.Request) error {
	records, err := s.store.batches(server.Owner(r.Context()))
	if err != nil {
		return err
	}
	list := make([]batchJSON, len(records))
	for i, b := range records {
		list[i] = b.batchJSON
	}
	p, err := page(r, list, mostBatches, func(b batchJSON) string { return b.ID })
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, batchListJSON(p))
}

func noBatch(r *http.Request, err error) error {
	if errors.Is(err, errUnknown) {
		return wire.Errorf(http.StatusNotFound, "no batch %s", wire.Clip(r.PathValue("id")))
	}
	return err
}

// getBatch is GET /v1/batches/{id}.
func (s *api) getBatch(w http.ResponseWriter, r *http.Request) error {
	b, err := s.store.batch(server.Owner(r.Context()), r.PathValue("id"))
	if err != nil {
		return noBatch(r, err)
	}
	return wire.WriteJSON(w, b.batchJSON)
}

// cancelBatch is POST /v1/batches/{id}/cancel.
func (s *api) cancelBatch(w http.ResponseWriter, r *http.Request) error {
	b, err := s.cancel(r.Context(), server.Owner(r.Context()), r.PathValue("id"))
	if err != nil {
		return noBatch(r, err)
	}
	return wire.WriteJSON(w, b.batchJSON)
}

func (s *api) cancel(ctx context.Context, owner, id string) (record, error) {
	if _, err := s.store.batch(owner, id); err != nil {
		return record{}, err
	}
	b, err := s.store.update(ctx, owner, id, func(b *record) error {
		switch {
		case b.Status == cancelling:
		case b.finished() || b.Status == finalizing:
			return wire.BadRequest("%s is %s and cannot be cancelled", b.ID, b.Status)
		default:
			b.enter(cancelling, s.store.now().Unix())
		}
		return nil
	})
	if err == nil {
		s.worker.cancel(id)
	}
	return b, err
}
