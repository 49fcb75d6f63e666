/* Starts a GGUF model with llama.cpp, generates one token for "hi" and ends: the peer of `ingot run`. bench/start.sh builds it. */
#include <stdio.h>
#include <string.h>

#include "llama.h"

static void quiet(enum ggml_log_level level, const char *text, void *data) { (void)level, (void)text, (void)data; }

int main(int argc, char **argv) {
	if (argc != 2) return 2;
	llama_log_set(quiet, NULL);
	llama_backend_init();
	struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
	if (!model) return 1;
	struct llama_context_params params = llama_context_default_params();
	params.n_ctx = 2048;
	struct llama_context *context = llama_init_from_model(model, params);
	if (!context) return 1;
	const struct llama_vocab *vocab = llama_model_get_vocab(model);
	struct llama_chat_message turn = {"user", "hi"};
	char text[4096];
	int size = llama_chat_apply_template(llama_model_chat_template(model, NULL), &turn, 1, true, text, sizeof text);
	if (size < 0 || size >= (int)sizeof text) return 1;
	llama_token tokens[1024];
	int count = llama_tokenize(vocab, text, size, tokens, 1024, true, true);
	if (count <= 0 || llama_decode(context, llama_batch_get_one(tokens, count))) return 1;
	struct llama_sampler *sampler = llama_sampler_init_greedy();
	llama_token next = llama_sampler_sample(sampler, context, -1);
	size = llama_token_to_piece(vocab, next, text, sizeof text, 0, true);
	printf("%.*s\n", size, text);
	return 0;
}
