/*
 * user/output/flame/flame_page.h - the files that make up the page of a flame graph, as they are in the
 * source.
 */
#ifndef OUTPUT_FLAME_PAGE_H
#define OUTPUT_FLAME_PAGE_H

extern const char flame_html[], flame_html_end[];
extern const char flame_css[], flame_css_end[];
extern const char flame_model_js[], flame_model_js_end[];
extern const char flame_draw_js[], flame_draw_js_end[];
extern const char flame_ui_js[], flame_ui_js_end[];

#endif
