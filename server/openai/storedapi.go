package openai

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/ingotml/ingot/server"
	"github.com/ingotml/ingot/server/openai/items"
	"github.com/ingotml/ingot/server/openai/stored"
	"github.com/ingotml/ingot/server/wire"
)

// owner tells apart who stores responses.
func owner(r *http.Request) string { return server.Owner(r.Context()) }

func storedItems(list []items.Item) (out []stored.Item) {
	for _, it := range list {
		id, raw := it.Stored()
		out = append(out, stored.Item{ID: id, Raw: raw})
	}
	return out
}

// unknown returns the error of a request about a response that is not stored.
func unknown(err error) error {
	if errors.Is(err, stored.ErrUnknown) {
		return wire.Errorf(http.StatusNotFound, "%v: %s", err, storeRemedy)
	}
	return err
}

// getResponse is GET /v1/responses/{id}.
func (s *api) getResponse(w http.ResponseWriter, r *http.Request) error {
	if r.FormValue("stream") == "true" {
		return wire.BadParam("stream", "a stored response is not streamed: get it again until it is complete")
	}
	body, err := s.stored.Get(owner(r), r.PathValue("id"))
	if err != nil {
		return unknown(err)
	}
	return wire.WriteJSON(w, body)
}

// deletedJSON says that a response was deleted.
type deletedJSON struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Deleted bool   `json:"deleted"`
}

// deleteResponse is DELETE /v1/responses/{id}.
func (s *api) deleteResponse(w http.ResponseWriter, r *http.Request) error {
	id := r.PathValue("id")
	if err := s.stored.Delete(owner(r), id, errCancelled); err != nil {
		return unknown(err)
	}
	return wire.WriteJSON(w, deletedJSON{id, "response", true})
}

// cancelResponse is POST /v1/responses/{id}/cancel.
func (s *api) cancelResponse(w http.ResponseWriter, r *http.Request) error {
	body, running, err := s.stored.Cancel(r.Context(), owner(r), r.PathValue("id"), errCancelled)
	if err != nil {
		return unknown(err)
	}
	var of struct {
		Status string `json:"status"`
	}
	if err := json.Unmarshal(body, &of); err != nil {
		return err
	}
	if !running && of.Status != statusCancelled {
		return wire.BadRequest("the response is %s: only a response in progress can be cancelled", of.Status)
	}
	return wire.WriteJSON(w, body)
}

// itemListJSON is a page of items.
type itemListJSON struct {
	Object  string            `json:"object"`
	Data    []json.RawMessage `json:"data"`
	FirstID *string           `json:"first_id"`
	LastID  *string           `json:"last_id"`
	HasMore bool              `json:"has_more"`
}

// Sizes of a page of items.
const (
	itemsPage     = 20
	itemsPageMost = 100
)

// listItems is GET /v1/responses/{id}/input_items: the items that the response answers, with those of the responses
// that it continues. The newest one is the first, unless order is asc.
func (s *api) listItems(w http.ResponseWriter, r *http.Request) error {
	limit := itemsPage
	if text := r.FormValue("limit"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > itemsPageMost {
			return wire.BadParam("limit", "must be between 1 and %d", itemsPageMost)
		}
		limit = n
	}
	list, err := s.stored.Conversation(owner(r), r.PathValue("id"), false)
	if err != nil {
		return unknown(err)
	}
	switch order := r.FormValue("order"); order {
	case "asc":
	case "", "desc":
		slices.Reverse(list)
	default:
		return wire.BadParam("order", "must be asc or desc")
	}
	if after := r.FormValue("after"); after != "" {
		at := slices.IndexFunc(list, func(it stored.Item) bool { return it.ID == after })
		if at < 0 {
			return wire.BadParam("after", "the response has no item %q", wire.Clip(after))
		}
		list = list[at+1:]
	}
	out := itemListJSON{Object: "list", Data: []json.RawMessage{}, HasMore: len(list) > limit}
	for _, it := range list[:min(limit, len(list))] {
		if out.FirstID == nil {
			out.FirstID = &it.ID
		}
		out.LastID = &it.ID
		out.Data = append(out.Data, it.Raw)
	}
	return wire.WriteJSON(w, out)
}
