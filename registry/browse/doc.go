// Package browse looks at what registries have and deletes it: tags, manifests with their configs, and what is attached
// to them.
//
// Contract:
//
//   - Nothing is pulled: only manifests and configs are read. Each is verified against its digest.
//   - Nothing is deleted that [PlanDeletion] has not listed, and nothing in a store.
//   - What a registry lists is bounded, and so is the number of requests that follow from it.
package browse
