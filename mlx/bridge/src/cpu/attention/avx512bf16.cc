// Tiles of bfloat16 queries and keys; all other attention is that of avx512.
#define INGOT_ISA avx512bf16
#include "cpu/attention/bf16.h"

namespace ingot::cpu {

void attention_tile_avx512bf16(const AttentionTask& t) { avx512bf16::tile_bf16(t); }

}  // namespace ingot::cpu
