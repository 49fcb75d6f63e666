#define INGOT_ISA avx512
#include "cpu/attention/index.h"
#include "cpu/attention/small_batch.h"
#include "cpu/attention/tile.h"

namespace ingot::cpu {

const AttentionKernels attention_avx512 = {
    .panel = avx512::kPanel,
    .chunk = avx512::kChunk,
    .tile = avx512::tile,
    .small_batch = avx512::small_batch,
    .join = avx512::join,
    .index_panel = avx512::kIndexPanel,
    .index = avx512::index_panels,
    .pack = avx512::pack,
};

}  // namespace ingot::cpu
