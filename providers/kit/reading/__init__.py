"""Takes apart what a sender sent, strictly: what is odd is refused, never guessed at.

`bodies`: JSON, forms and text, and the headers beside them
`content_coding`: bodies under a Content-Encoding, inflated within bounds
`json_paths`: places in a JSON document, to find, leave out or cut out what is there
`multipart`: the text fields of multipart forms
`xml_body`: XML without declarations
"""
