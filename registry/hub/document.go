package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"regexp"

	"github.com/ingotml/ingot/internal/limits"
	"github.com/ingotml/ingot/internal/limits/filekind"
	"github.com/ingotml/ingot/registry/verdict"
)

// errBody is an answer whose body is not what the status promises: empty, cut, or another one. It may pass.
var errBody = errors.New("the answer is not what was asked for")

// statusDocument is a document that has its own way to say that it failed.
type statusDocument interface {
	// failed returns the status that the document means, and its text; 0 = it did not fail.
	failed() (status int, text string)
}

// document fetches an answer of the API. It returns the header, and the address that answered after redirects.
func (c *Client) document(ctx context.Context, q call, into any) (http.Header, *url.URL, error) {
	q.step = verdict.HubList
	a := &attempts{c: c, what: q.what, host: q.host}
	for {
		h, at, err := c.documentOnce(ctx, q, into)
		if err == nil {
			return h, at, nil
		}
		if err := a.backoff(ctx, err); err != nil {
			return nil, nil, err
		}
	}
}

func (c *Client) documentOnce(ctx context.Context, q call, into any) (http.Header, *url.URL, error) {
	resp, q, err := c.follow(ctx, q, nil)
	if err != nil {
		return nil, nil, err
	}
	defer discard(resp)
	if resp.StatusCode != http.StatusOK {
		return nil, nil, c.statusError(q, resp)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limits.HubDocument+1))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, nil, fmt.Errorf("%s: %w", q.what, err)
	case err != nil:
		return nil, nil, err
	case len(body) > limits.HubDocument:
		return nil, nil, fmt.Errorf("%s: the hub's answer is larger than %d MiB", q.what, limits.HubDocument>>20)
	}
	if err := c.parse(q, body, into); err != nil {
		return nil, nil, err
	}
	return resp.Header, q.url, nil
}

// parse decodes an answer. Some hubs send an error with status 200.
func (c *Client) parse(q call, body []byte, into any) error {
	err := json.Unmarshal(body, into)
	if a, ok := into.(statusDocument); ok && err == nil {
		if status, text := a.failed(); status != 0 {
			return &StatusError{What: q.what, Status: status, Message: c.said(text), step: q.step, origin: origin(q.url)}
		}
	}
	if err == nil {
		return nil
	}
	found := filekind.Of(body, int64(len(body)))
	var syntax *json.SyntaxError
	switch text := errorText(body); {
	case text != "":
		return fmt.Errorf("%s: the hub answers with an error: %s", q.what, c.said(text))
	case found.Kind == filekind.Empty:
		return fmt.Errorf("%s: %w: it is empty", q.what, errBody)
	case found.Stray():
		return fmt.Errorf("%s: the hub's answer is %s, not the JSON that it should be; check the endpoint, "+
			"and whether the network wants a login", q.what, found)
	case errors.As(err, &syntax) && syntax.Offset >= int64(len(body)):
		return fmt.Errorf("%s: %w: it is cut after %d bytes", q.what, errBody, len(body))
	}
	return fmt.Errorf("%s: the hub's answer is not the JSON that it should be: %w", q.what, err)
}

// xmlMessage matches the text of an error of object stores.
var xmlMessage = regexp.MustCompile(`<Message>([^<]{1,1000})</Message>`)

// errorText returns what a server says about an error in a body: the fields of JSON that the hubs use, or the message
// of a store's XML. It is foreign text.
func errorText(body []byte) string {
	var said struct {
		Error, Message, Msg, Detail json.RawMessage
	}
	if json.Unmarshal(body, &said) == nil {
		for _, field := range []json.RawMessage{said.Error, said.Message, said.Msg, said.Detail} {
			var text string
			if json.Unmarshal(field, &text) == nil && text != "" {
				return text
			}
			var inner struct{ Message string }
			if json.Unmarshal(field, &inner) == nil && inner.Message != "" {
				return inner.Message
			}
		}
	}
	if m := xmlMessage.FindSubmatch(body); m != nil {
		return string(m[1])
	}
	return ""
}

// bounded is a list that a hub sends, of which no more is decoded than is enough to refuse it: three bytes of JSON
// would become a whole element. Its users refuse more than [limits.HubFiles].
type bounded[T any] []T

// UnmarshalJSON implements [json.Unmarshaler].
func (l *bounded[T]) UnmarshalJSON(text []byte) error {
	d := json.NewDecoder(bytes.NewReader(text))
	first, err := d.Token()
	if err != nil || first == nil { // null
		return err
	}
	if first != json.Delim('[') {
		return &json.UnmarshalTypeError{Value: "another value", Type: reflect.TypeFor[[]T]()}
	}
	for d.More() && len(*l) <= limits.HubFiles {
		var element T
		if err := d.Decode(&element); err != nil {
			return err
		}
		*l = append(*l, element)
	}
	return nil
}
