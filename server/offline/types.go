package offline

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/server/wire"
)

// fileJSON describes a file.
type fileJSON struct {
	ID        string `json:"id"`
	Object    string `json:"object"`
	Bytes     int64  `json:"bytes"`
	CreatedAt int64  `json:"created_at"`
	ExpiresAt *int64 `json:"expires_at,omitempty"`
	Filename  string `json:"filename"`
	Purpose   string `json:"purpose"`
	Status    string `json:"status"` // deprecated there: always processed
}

// Purposes of files.
const (
	purposeInput  = "batch"
	purposeOutput = "batch_output"
)

type deletedJSON struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// listJSON is a page of a list.
type listJSON[T any] struct {
	Object  string  `json:"object"`
	Data    []T     `json:"data"`
	FirstID *string `json:"first_id"`
	LastID  *string `json:"last_id"`
	HasMore bool    `json:"has_more"`
}

type (
	fileListJSON  listJSON[fileJSON]
	batchListJSON listJSON[batchJSON]
)

// page returns the part of a list that a request asks for. The list is ordered from old to new.
func page[T any](r *http.Request, list []T, most int, id func(T) string) (p listJSON[T], err error) {
	q := r.URL.Query()
	if text := q.Get("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > most {
			return p, wire.BadParam("limit", "must be between 1 and %d", most)
		}
		most = n
	}
	switch q.Get("order") {
	case "", "desc":
		slices.Reverse(list)
	case "asc":
	default:
		return p, wire.BadParam("order", "must be asc or desc")
	}
	if after := q.Get("after"); after != "" {
		i := slices.IndexFunc(list, func(x T) bool { return id(x) == after })
		if i < 0 {
			return p, wire.BadParam("after", "%s is not in the list", wire.Clip(after))
		}
		list = list[i+1:]
	}
	p = listJSON[T]{Object: "list", Data: append([]T{}, list[:min(most, len(list))]...), HasMore: len(list) > most}
	if n := len(p.Data); n > 0 {
		p.FirstID, p.LastID = new(id(p.Data[0])), new(id(p.Data[n-1]))
	}
	return p, nil
}

// batchRequest is the body of POST /v1/batches.
type batchRequest struct {
	Input    string            `json:"input_file_id"`
	Endpoint string            `json:"endpoint"`
	Window   string            `json:"completion_window"`
	Metadata map[string]string `json:"metadata"`
	Expires  *expiresAfter     `json:"output_expires_after"`
}

// expiresAfter says when a file is deleted.
type expiresAfter struct {
	Anchor  string `json:"anchor"`
	Seconds int64  `json:"seconds"`
}

// batchJSON describes a batch. Times are in seconds since 1970; those of events that have not happened are absent.
type batchJSON struct {
	ID           string            `json:"id"`
	Object       string            `json:"object"`
	Endpoint     string            `json:"endpoint"`
	Errors       *errorsJSON       `json:"errors"` // why it failed as a whole
	Input        string            `json:"input_file_id"`
	Window       string            `json:"completion_window"`
	Status       string            `json:"status"`
	Output       *string           `json:"output_file_id"`
	ErrorFile    *string           `json:"error_file_id"`
	CreatedAt    int64             `json:"created_at"`
	InProgressAt *int64            `json:"in_progress_at"`
	ExpiresAt    *int64            `json:"expires_at"`
	FinalizingAt *int64            `json:"finalizing_at"`
	CompletedAt  *int64            `json:"completed_at"`
	FailedAt     *int64            `json:"failed_at"`
	ExpiredAt    *int64            `json:"expired_at"`
	CancellingAt *int64            `json:"cancelling_at"`
	CancelledAt  *int64            `json:"cancelled_at"`
	Counts       countsJSON        `json:"request_counts"`
	Metadata     map[string]string `json:"metadata"`
}

type countsJSON struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

type errorsJSON struct {
	Object string      `json:"object"`
	Data   []errorJSON `json:"data"`
}

type errorJSON struct {
	Code    string  `json:"code"`
	Message string  `json:"message"`
	Param   *string `json:"param"`
	Line    *int    `json:"line"`
}

// States of a batch.
const (
	validating = "validating"
	inProgress = "in_progress"
	finalizing = "finalizing"
	completed  = "completed"
	failed     = "failed"
	expired    = "expired"
	cancelling = "cancelling"
	cancelled  = "cancelled"
)

// finished reports whether nothing more happens to a batch.
func (b *batchJSON) finished() bool {
	return slices.Contains([]string{completed, failed, expired, cancelled}, b.Status)
}

// enter changes the state of a batch.
func (b *batchJSON) enter(status string, now int64) {
	b.Status = status
	at := map[string]**int64{
		inProgress: &b.InProgressAt, finalizing: &b.FinalizingAt, completed: &b.CompletedAt, failed: &b.FailedAt,
		expired: &b.ExpiredAt, cancelling: &b.CancellingAt, cancelled: &b.CancelledAt,
	}[status]
	*at = &now
}
