// SPDX-License-Identifier: Apache-2.0
// A target that only carries precompiled headers needs one source.
