// Package tags compiles structural tags as XGrammar has them to expressions over bytes: free text in which tags begin
// with triggers, and trees of formats. https://xgrammar.mlc.ai/docs/structural_tag/structural_tag.html
//
// Contract: a source is {"type": "structural_tag", "format": {...}}, or the older form with "structures" and
// "triggers". Free text is text in UTF-8 without the triggers and what is excluded; within a tag it ends where the
// tag's end begins. Errors name the format's place as a JSON pointer. Formats and fields that this package lacks (the
// XML styles of schemas, any_order, max_tokens of any_text) are ErrUnsupported by name.
package tags
