package cmd

import (
	"github.com/ingotml/ingot/manifest/settings"
	"github.com/ingotml/ingot/manifest/store"
)

// checkRequires fails if the model requires a later version of this program.
func checkRequires(store *store.Store, entry *store.Entry) error {
	texts, err := settings.Read(store, entry)
	if err != nil {
		return err
	}
	return texts.CheckRequires(entry.Name.String(), Version)
}
