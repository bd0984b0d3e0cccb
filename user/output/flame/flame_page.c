/*
 * user/output/flame/flame_page.c - flame.html and the files that go into it, embedded by the assembler.
 */
#include "output/flame/flame_page.h"

#define FILE_AS(name, path)                                      \
	__asm__(".pushsection .rodata\n"                         \
		".global " #name ", " #name "_end\n" #name ":\n" \
		".incbin \"" path "\"\n" #name "_end:\n"         \
		".byte 0\n"                                      \
		".popsection\n")

FILE_AS(flame_html, "user/output/flame/flame.html");
FILE_AS(flame_css, "user/output/flame/flame.css");
FILE_AS(flame_model_js, "user/output/flame/flame_model.js");
FILE_AS(flame_draw_js, "user/output/flame/flame_draw.js");
FILE_AS(flame_ui_js, "user/output/flame/flame_ui.js");
