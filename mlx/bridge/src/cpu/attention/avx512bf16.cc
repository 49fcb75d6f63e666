#define INGOT_ISA avx512bf16
#include "cpu/attention/small_batch.h"
#include "cpu/attention/bf16.h"

namespace ingot::cpu {

const AttentionKernels attention_avx512bf16 = {avx512bf16::kPanel, avx512bf16::kChunk, avx512bf16::tile_or_bf16,
                                               avx512bf16::small_batch, avx512bf16::join, avx512bf16::pack};

}  // namespace ingot::cpu
