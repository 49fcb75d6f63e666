// Package batches runs the requests of a file, one for each line, and writes their results in the order of the lines.
//
// The forms of lines and results are those of OpenAI's Batch API,
// https://platform.openai.com/docs/guides/batch.
//
// Contract:
//   - A [Runner] reads its input once, line by line. It holds at most the lines and results of a window of requests.
//   - Each line has one result, also one that is no request. Results are written whole and in order, so that a file of
//     them tells which lines are done: [Runner.Resume] continues after those of an interrupted run.
//   - A request that a busy server refuses is repeated until it runs.
//   - A Runner is used by one goroutine at a time.
package batches

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/clip"
)

// Endpoints are the paths that requests may be for.
var Endpoints = []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses"}

// Request is what a line asks for.
type Request struct {
	Line     int // number of the line in the file, from 1
	CustomID string
	URL      string
	Body     []byte // a JSON object
}

// Response is the response to a request.
type Response struct {
	Status     int
	ID         string // of the request at the server; may be empty
	Body       []byte // JSON
	RetryAfter time.Duration
}

// Result is a line of results. Exactly one of Response and Error is set.
type Result struct {
	ID       string          `json:"id"`
	CustomID *string         `json:"custom_id"` // null if the line has none
	Response *ResultResponse `json:"response"`
	Error    *ResultError    `json:"error"`
	Line     int             `json:"line,omitempty"` // an extension: of a line that is no request
}

// ResultResponse is the response to a request, also one that failed at the server.
type ResultResponse struct {
	Status    int             `json:"status_code"`
	RequestID string          `json:"request_id"`
	Body      json.RawMessage `json:"body"`
}

// ResultError says why a line has no response.
type ResultError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Succeeded reports whether the server did what the request asked.
func (r *Result) Succeeded() bool { return r.Response != nil && r.Response.Status == 200 }

// Codes of errors of results.
const (
	CodeInvalid   = "invalid_request"
	CodeExpired   = "batch_expired"
	CodeCancelled = "batch_cancelled"
)

// lineJSON is a line of the input.
type lineJSON struct {
	CustomID *string         `json:"custom_id"`
	Method   string          `json:"method"`
	URL      string          `json:"url"`
	Body     json.RawMessage `json:"body"`
}

// lineError says what is wrong with a line. Its message begins with the line's number.
func lineError(line int, format string, args ...any) *ResultError {
	return &ResultError{CodeInvalid, fmt.Sprintf("line %d: ", line) + fmt.Sprintf(format, args...)}
}

// parse returns the request of a line, or what is wrong with it. The request has the line's id in both cases, if it is
// readable. endpoint is the path that it must be for; "": any of Endpoints.
func parse(line int, text []byte, endpoint string) (r Request, wrong *ResultError) {
	r.Line = line
	var in lineJSON
	if err := json.Unmarshal(text, &in); err != nil {
		return r, lineError(line, "it is not a request in JSON: %s", plain(err))
	}
	if in.CustomID == nil || *in.CustomID == "" {
		return r, lineError(line, "custom_id: missing; results are told apart by it")
	}
	if r.CustomID = *in.CustomID; len(r.CustomID) > limits.BatchID {
		r.CustomID = ""
		return r, lineError(line, "custom_id: %d bytes, at most %d are allowed", len(*in.CustomID), limits.BatchID)
	}
	r.URL = in.URL
	switch {
	case in.Method != "POST":
		return r, lineError(line, "method: %s is not POST", quoted(in.Method))
	case endpoint != "" && in.URL != endpoint:
		return r, lineError(line, "url: %s is not the batch's endpoint, %s", quoted(in.URL), endpoint)
	case !slices.Contains(Endpoints, in.URL):
		return r, lineError(line, "url: %s is not one of %s", quoted(in.URL), strings.Join(Endpoints, ", "))
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(in.Body, &body); err != nil || body == nil {
		return r, lineError(line, "body: it is not a JSON object")
	}
	for _, name := range []string{"stream", "background"} {
		if v := string(bytes.TrimSpace(body[name])); v != "" && v != "false" && v != "null" {
			return r, lineError(line, "body.%s: a batch has whole responses only; leave it out", name)
		}
	}
	r.Body = in.Body
	return r, nil
}

// plain returns what is wrong with JSON, without names of this program's types.
func plain(err error) string {
	switch e := err.(type) {
	case *json.UnmarshalTypeError:
		return fmt.Sprintf("%s: a %s is not allowed here", quoted(e.Field), quoted(e.Value))
	case *json.SyntaxError:
		return fmt.Sprintf("%v (at byte %d)", e, e.Offset)
	}
	return clip.Controls(err.Error())
}

func quoted(s string) string {
	if s == "" {
		return "nothing"
	}
	return clip.Controls(clip.Text(s, 80))
}

// WithPriority returns a request's body with a priority, which replaces the request's own.
func WithPriority(body []byte, priority int) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil {
		return nil, err
	}
	fields["priority"] = json.RawMessage(fmt.Sprint(priority))
	return json.Marshal(fields)
}
